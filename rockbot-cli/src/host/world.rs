//! Tools for the world: the web, HTTP interfaces and files, as far as the features of this build
//! have them.

use std::path::PathBuf;

use rockbot::agent::AgentHostBuilder;
use rockbot::config::Config;
use rockbot::prelude::*;
#[cfg(feature = "files")]
use rockbot::tools::files::FileTools;
#[cfg(feature = "rest")]
use rockbot::tools::rest::{OpenApi, RestTools};
#[cfg(feature = "scheduling")]
use rockbot::tools::scheduling::Scheduling;
use rockbot::tools::subagents::Subagents;
#[cfg(feature = "web")]
use rockbot::tools::web::WebTools;

/// The families of tools that a program wants, beside the families of the settings.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Searches of the web, and pages.
    pub web: bool,
    /// An OpenAPI document: a file or a URL.
    pub openapi: Option<String>,
    /// The folder of the agent's files.
    pub files: Option<PathBuf>,
    /// Tasks at set times.
    pub scheduling: bool,
    /// The heartbeat patrol, if there are schedules.
    pub patrol: bool,
    /// Work in the background.
    pub subagents: bool,
}

impl World {
    /// Adds the families. One that the settings name is left to them.
    pub fn add_to(self, builder: AgentHostBuilder, config: &Config) -> Result<AgentHostBuilder, BoxError> {
        let is_set = |name: &str| config.section(name).map(|section| section.is_set());
        let web = is_set("WebTools")?;
        let rest = is_set("RestTools")?;
        let files = is_set("FileTools")?;
        let builder = if self.web && !web { with_web(builder)? } else { builder };
        let builder = match self.openapi.filter(|_| !rest) {
            Some(document) => with_openapi(builder, document)?,
            None => builder,
        };
        let builder = match self.files.filter(|_| !files) {
            Some(folder) => with_files(builder, folder)?,
            None => builder,
        };
        let patrol = is_set("HeartbeatPatrol")?;
        let builder = if self.scheduling && !patrol && !is_set("Scheduling")? {
            with_scheduling(builder, self.patrol)?
        } else {
            builder
        };
        if self.subagents && !is_set("Subagents")? {
            Ok(builder.add(Subagents::new()))
        } else {
            Ok(builder)
        }
    }
}

#[cfg(feature = "web")]
fn with_web(builder: AgentHostBuilder) -> Result<AgentHostBuilder, BoxError> {
    Ok(builder.add(WebTools::new()))
}

#[cfg(not(feature = "web"))]
fn with_web(_: AgentHostBuilder) -> Result<AgentHostBuilder, BoxError> {
    Err("tools for the web need a build with `--features web`".into())
}

#[cfg(feature = "rest")]
fn with_openapi(builder: AgentHostBuilder, document: String) -> Result<AgentHostBuilder, BoxError> {
    let is_url = document.starts_with("http://") || document.starts_with("https://");
    let document = if is_url {
        OpenApi::url(document)
    } else {
        OpenApi::file(document)
    };
    Ok(builder.add(RestTools::new().openapi(document)))
}

#[cfg(not(feature = "rest"))]
fn with_openapi(_: AgentHostBuilder, _: String) -> Result<AgentHostBuilder, BoxError> {
    Err("tools from OpenAPI documents need a build with `--features rest`".into())
}

#[cfg(feature = "scheduling")]
fn with_scheduling(builder: AgentHostBuilder, patrol: bool) -> Result<AgentHostBuilder, BoxError> {
    let scheduling = Scheduling::new();
    Ok(builder.add(if patrol {
        scheduling.with_heartbeat_patrol("0 */6 * * *")
    } else {
        scheduling
    }))
}

#[cfg(not(feature = "scheduling"))]
fn with_scheduling(_: AgentHostBuilder, _: bool) -> Result<AgentHostBuilder, BoxError> {
    Err("scheduled tasks need a build with `--features scheduling`".into())
}

#[cfg(feature = "files")]
fn with_files(builder: AgentHostBuilder, folder: PathBuf) -> Result<AgentHostBuilder, BoxError> {
    Ok(builder.add(FileTools::new(folder)))
}

#[cfg(not(feature = "files"))]
fn with_files(_: AgentHostBuilder, _: PathBuf) -> Result<AgentHostBuilder, BoxError> {
    Err("tools for files need a build with `--features files`".into())
}
