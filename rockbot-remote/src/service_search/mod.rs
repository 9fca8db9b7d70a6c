//! The search over everything that a model can hand work to: [`ServiceSearch`].
//!
//! `index` gathers the services of all sources and ranks them; `sources` has the sources of the
//! host itself. `tool` is the model's tool, `hints` the context source with `everyday`, the words
//! that tell nothing about a topic, and `summaries` the background work that describes services in
//! a sentence.
//!
//! The service search has no index of its own to keep up: each search asks all sources, which
//! answer from memory, and the index is built anew when the hash of the services differs.
//! `relevance` is the part of the query's terms that a service has, since a BM25 score says
//! nothing by itself.

mod everyday;
#[cfg(test)]
mod hint_tests;
mod hints;
mod index;
mod sources;
mod summaries;
#[cfg(test)]
mod tests;
mod tool;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::ChatClient;
use rockbot_core::config::{Config, ConfigError};
use rockbot_core::context::CancellationToken;
use rockbot_core::files::DataFolder;
use rockbot_core::service::{AgentDirectory, KnownAgents, ServiceSources};
use rockbot_core::store::SkillStore;
use rockbot_core::subsystem::{Declarations, Idle, PartCost, Parts, Running, RunningTask, Subsystem};
use rockbot_core::tool::{ToolGuides, ToolRegistry};
use rockbot_core::{BoxError, Principal, ToolName};
use tokio::time::sleep;

use hints::ServiceHints;
use index::ServiceIndex;
use summaries::Summaries;

/// The name of the file of known agents in the data folder.
const AGENTS: &str = "well-known-agents.json";

/// Interval of the looks for services without a summary.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(60);

/// Settings of the section `ServiceSearch`, which [`ServiceSearch`] reads while the host is
/// built; options set in code take precedence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceSearchSettings {
    /// `Enabled`: `false` turns the search off, also one that code adds. Default `true`.
    pub is_enabled: bool,
    /// `Hints`: `true` if each message is shown with the two services that fit it best, if any does.
    /// Default `false`.
    pub has_hints: bool,
    /// `Summaries`: `true` if a model describes agents and MCP servers in a sentence, once for each
    /// version of them. Default `false`.
    pub has_summaries: bool,
    /// `AgentsPath`: the file of known agents; a relative path is below the data folder. Default:
    /// `well-known-agents.json` there, if there is one.
    pub agents: Option<PathBuf>,
}

impl ServiceSearchSettings {
    /// Reads the settings from `config`.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let section = config.section("ServiceSearch")?;
        Ok(Self {
            is_enabled: section.get_or("Enabled", true)?,
            has_hints: section.get_or("Hints", false)?,
            has_summaries: section.get_or("Summaries", false)?,
            agents: section.get("AgentsPath")?,
        })
    }
}

/// One search over the agents, MCP servers, tools, guides and skills that the model can use.
///
/// The model has the tool `search_known_services`, and a guide to it. What a search finds is
/// shown to the model from then on, where it is a tool on demand. A further task of a turn (a
/// follow-up) is shown with the services that fit it. The agents are those of the host's
/// [`AgentDirectory`]; without another one those of the file `well-known-agents.json` in the data
/// folder. Other parts add services by [`ServiceSources`].
///
/// # Examples
///
/// ```
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_host::AgentHost;
/// use rockbot_remote::ServiceSearch;
///
/// let host = AgentHost::in_memory().chat(ScriptedModel::new()).add(ServiceSearch::new().hints()).build()?;
/// assert!(host.tools().snapshot().find("search_known_services").is_some());
/// # Ok::<(), rockbot_host::BuildError>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct ServiceSearch {
    has_hints: Option<bool>,
    has_summaries: Option<bool>,
    agents: Option<PathBuf>,
    /// `true` if the settings turn the search off.
    is_off: bool,
    index: SharedIndex,
    summaries: Option<Arc<Summaries>>,
}

/// The index, which is there once the host has started.
type SharedIndex = Arc<OnceLock<ServiceIndex>>;

impl ServiceSearch {
    /// Creates a search without hints and summaries, unless the settings ask for them.
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows each message with the two services that fit it best, if any fits. They cost up to 100
    /// tokens a message, and services that others describe make the turn untrusted. Default: the
    /// setting `ServiceSearch.Hints`.
    pub fn hints(mut self) -> Self {
        self.has_hints = Some(true);
        self
    }

    /// Lets a model describe agents and MCP servers in a sentence, in the background: one call for
    /// each version of each. Default: the setting `ServiceSearch.Summaries`.
    pub fn summaries(mut self) -> Self {
        self.has_summaries = Some(true);
        self
    }

    /// Sets the file of known agents: a JSON array of cards with `agentName`, `description` and
    /// `skills`. Default: the setting `ServiceSearch.AgentsPath`.
    pub fn agents(mut self, path: impl Into<PathBuf>) -> Self {
        self.agents = Some(path.into());
        self
    }

    /// Returns the file of agents, if there is one.
    fn agents_file(&self, settings: &ServiceSearchSettings, data_dir: Option<&Path>) -> Option<PathBuf> {
        let below = |path: &PathBuf| data_dir.map_or_else(|| path.clone(), |folder| folder.join(path));
        let named = self.agents.clone().or_else(|| settings.agents.as_ref().map(below));
        named.or_else(|| data_dir.map(|folder| folder.join(AGENTS)).filter(|path| path.exists()))
    }
}

#[async_trait]
impl Subsystem for ServiceSearch {
    fn name(&self) -> &str {
        "service-search"
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        let parts = declarations.parts();
        let config = parts.get::<Config>().unwrap_or_default();
        let settings = ServiceSearchSettings::from_config(&config)?;
        self.is_off = !settings.is_enabled;
        if self.is_off {
            declarations.cost(PartCost::off("a search over services").with_switch("the section `ServiceSearch`"));
            return Ok(());
        }
        let data_dir = parts.data_dir().map(Path::to_owned);
        if self.has_summaries.unwrap_or(settings.has_summaries) {
            let folder = data_dir
                .as_ref()
                .map(|folder| DataFolder::open(folder.join("services")));
            self.summaries = Some(Arc::new(Summaries::open(folder.transpose()?)?));
        }
        let agents = match self.agents_file(&settings, data_dir.as_deref()) {
            Some(path) => KnownAgents::from_file(&path)?,
            None => KnownAgents::new(Vec::new())?,
        };
        declarations.provide_default::<dyn AgentDirectory>(move |_| Ok(Arc::new(agents)));
        declarations.tool(tool::tool(&self.index));
        declarations.guide(tool::guide());
        let has_hints = self.has_hints.unwrap_or(settings.has_hints);
        declarations.context_source(ServiceHints::new(self.index.clone(), has_hints));
        let calls = match self.summaries {
            Some(_) => "one for each version of an agent or MCP server",
            None => "none",
        };
        let cost = PartCost::on("a search over services")
            .with_switch("the section `ServiceSearch`")
            .with_tools([ToolName::from(tool::NAME)])
            .with_model_calls(calls);
        declarations.cost(if has_hints {
            cost.with_message_tokens(hints::MAX_TOKENS)
        } else {
            cost
        });
        Ok(())
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        if self.is_off {
            return Ok(Box::new(Idle));
        }
        let mut all = sources::of_host(
            parts.require::<dyn ToolRegistry>()?,
            parts.get::<ToolGuides>().unwrap_or_default(),
            parts.get::<dyn SkillStore>(),
            parts.require::<dyn AgentDirectory>()?,
        );
        all.extend(
            parts
                .get::<ServiceSources>()
                .map(|sources| sources.all())
                .unwrap_or_default(),
        );
        let index = ServiceIndex::new(all, self.summaries.clone());
        // A host starts once.
        let index = self.index.get_or_init(|| index).clone();
        let Some(summaries) = self.summaries else {
            return Ok(Box::new(Idle));
        };
        let chat = parts.require::<dyn ChatClient>()?;
        let (running, task) = RunningTask::new(async move |stop: CancellationToken| {
            stop.run_until_cancelled(write_summaries(&summaries, &index, &*chat))
                .await;
        });
        tokio::spawn(task);
        Ok(Box::new(running))
    }
}

/// Summarizes the services that have no summary, now and whenever there are new ones.
async fn write_summaries(summaries: &Arc<Summaries>, index: &ServiceIndex, chat: &dyn ChatClient) {
    loop {
        summaries
            .update(&index.services(&Principal::default()).await, chat)
            .await;
        sleep(SUMMARY_INTERVAL).await;
    }
}
