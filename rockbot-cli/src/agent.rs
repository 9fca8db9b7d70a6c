//! The agent that settings and options ask for.

use std::path::{Path, PathBuf};

use rockbot::agent::AgentHostBuilder;
use rockbot::config::{Config, HostSettings, LlmSettings};
use rockbot::prelude::*;
use rockbot::{AgentIdentity, Principal};
use tempfile::TempDir;

use crate::arguments::AgentOptions;
use crate::chat::{Questions, mcp, questions};
use crate::commands::data::{Place, principals_of};
use crate::doctor;
use crate::host::broker::Broker;
use crate::host::database::Database;
use crate::host::outside::Outside;
use crate::host::{self, bridges, serve_a2a, serve_mcp, serve_web};

const INSTRUCTIONS: &str = "You are a helpful assistant in a terminal. Use your tools when they help. Answer briefly.";

/// Maximum number of tokens of a turn, unless `AgentHost.MaxTurnTokens` is set: a model that goes
/// in circles costs money.
const MAX_TURN_TOKENS: u64 = 200_000;

/// The stores of an agent, and the principals that have data in them.
#[derive(Debug)]
pub(crate) struct OpenedStores {
    pub(crate) host: AgentHost,
    pub(crate) principals: Vec<Principal>,
    _scratch: Option<TempDir>,
}

/// The options of the agent, with the folder for data that nothing else names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub(crate) options: &'a AgentOptions,
    pub(crate) data_folder: &'a Path,
    /// The name of an agent that the options do not name.
    pub(crate) name: &'a str,
}

impl<'a> Setup<'a> {
    /// Creates the setup of an agent.
    pub(crate) fn new(options: &'a AgentOptions, data_folder: &'a Path, name: &'a str) -> Self {
        Self {
            options,
            data_folder,
            name,
        }
    }

    /// Returns the data folder of the options, or `other` if the options name none.
    fn data<'b>(&'b self, other: &'b Path) -> &'b Path {
        self.options.data.as_deref().unwrap_or(other)
    }

    /// Returns the folder for images and files of answers.
    pub(crate) fn pictures(&self) -> PathBuf {
        self.data(self.data_folder).join("images")
    }

    /// Returns the file with the lines of earlier conversations.
    pub(crate) fn history(&self) -> PathBuf {
        self.data(self.data_folder).join("history.txt")
    }

    /// Connects to the brokers and builds the agent, which is not started yet. Parts of the agent
    /// ask `questions`.
    pub(crate) async fn open(&self, questions: Questions) -> Result<AgentHost, BoxError> {
        Ok(self.connected(&self.settings()?, questions).await?.build()?)
    }

    /// Builds the agent whose tools are served over standard input and output.
    #[cfg(feature = "mcp-server")]
    pub(crate) async fn open_for_client(&self) -> Result<AgentHost, BoxError> {
        let config = serve_mcp::on_stdio(self.settings()?)?;
        Ok(self.connected(&config, questions().0).await?.build()?)
    }

    /// Builds the agent of a service, which users and other programs on its bus use.
    pub(crate) async fn open_service(&self) -> Result<AgentHost, BoxError> {
        let config = self.settings()?;
        // The offline model answers a person who tries the program out. Users of a service must not
        // take its words for answers because a setting is missing, so a service has it by name
        // alone.
        LlmSettings::from_config(&config)?;
        let builder = self.connected(&config, questions().0).await?;
        if Broker::read(self.options.bus(), &config)?.is_some() {
            return Ok(builder.serve_users().serve_tools().build()?);
        }
        let mut is_served = false;
        for name in ["McpServer", "A2aServer", "WebServer"] {
            is_served |= config.section(name)?.setting("Address").is_some();
        }
        if !is_served {
            tracing::warn!("no broker and no address is set: nothing but schedules reaches this agent");
        }
        Ok(builder.build()?)
    }

    /// Builds the host that serves the MCP servers of the settings to agents on the broker.
    #[cfg(feature = "mcp")]
    pub(crate) async fn open_bridge(&self, allowed: &[String]) -> Result<AgentHost, BoxError> {
        let config = self.settings()?;
        let Some(broker) = Broker::read(self.options.bus(), &config)? else {
            return Err("a bridge needs a broker: set the section `RabbitMq` or `Pulsar`, or --mcp-bus URL".into());
        };
        let settings = HostSettings::read(&config, self.data_folder)?;
        let data = self.data(settings.agent_profile.base_path()).to_owned();
        let bridge = AgentHost::builder(self.options.name.as_deref().unwrap_or("mcp-bridge"))
            .settings(&settings)
            .data_dir(data)
            .shared_bus(broker.connect(false).await?)
            .add(rockbot::mcp::McpTools::default())
            .add(rockbot::mcp::McpBridge::new().allow_registration(allowed));
        Ok(bridge.build()?)
    }

    /// Builds the agent over one place of data, to read and write its stores: it connects to no broker,
    /// and is not started.
    pub(crate) async fn open_stores(&self, place: &Place) -> Result<OpenedStores, BoxError> {
        let config = self.settings()?;
        let services = self.options.tool_services.as_deref();
        let outside = Outside::unconnected(self.options.bus(), services, &config)?;
        let builder = self.compose(&config, outside, questions().0)?;
        match place {
            Place::Database => {
                let database = Database::connect(&config).await?;
                let principals = database.principals().await?;
                // What is not in the database is not copied either.
                let scratch = tempfile::tempdir()?;
                let host = database.add_to(builder.data_dir(scratch.path())).build()?;
                Ok(OpenedStores {
                    host,
                    principals,
                    _scratch: Some(scratch),
                })
            }
            Place::Folder(folder) => Ok(OpenedStores {
                host: builder.data_dir(folder).build()?,
                principals: principals_of(folder)?,
                _scratch: None,
            }),
        }
    }

    async fn connected(&self, config: &Config, questions: Questions) -> Result<AgentHostBuilder, BoxError> {
        let outside = Outside::connect(self.options.bus(), self.options.tool_services.as_deref(), config).await?;
        self.compose(config, outside, questions)
    }

    /// Returns the builder of the agent for the doctor, who connects to no broker and builds the
    /// agent in another data folder.
    pub(crate) fn examined(&self) -> Result<AgentHostBuilder, BoxError> {
        let config = self.settings()?;
        let host = HostSettings::read(&config, self.data_folder)?;
        let inputs = doctor::inputs(&config, self.data(host.agent_profile.base_path()))?;
        // Read anew, since what was read above counts as known, and only a part of the agent can
        // know it.
        let config = self.settings()?.with_variables(inputs);
        let services = self.options.tool_services.as_deref();
        let outside = Outside::unconnected(self.options.bus(), services, &config)?;
        self.compose(&config, outside, questions().0)
    }

    /// Reads the settings of the file, then of the environment, then of the options.
    fn settings(&self) -> Result<Config, BoxError> {
        let options = self.options;
        let mut config = Config::load(options.config.as_deref())?;
        for name in options.families() {
            // The settings go before the options.
            if !config.section(name)?.is_set() {
                config = config.with_text("options.toml", &format!("[{name}]\nEnabled = true\n"))?;
            }
        }
        let config = config.with_variables(options.remote_agents());
        let config = mcp::configured(config, options.mcp.as_deref())?;
        let config = bridges::configured(config, options.mcp_bus.is_some())?;
        let config = serve_a2a::configured(config, options.serve_a2a.as_deref())?;
        let config = serve_web::configured(config, options.serve_web.as_deref())?;
        serve_mcp::configured(config, options.serve_mcp.as_deref())
    }

    /// Returns the builder of the agent.
    fn compose(&self, config: &Config, outside: Outside, questions: Questions) -> Result<AgentHostBuilder, BoxError> {
        let settings = HostSettings::read(config, self.data_folder)?;
        let budget = settings.budget();
        let max_tokens = self.options.max_tokens.or(budget.max_tokens);
        // Models behind the gateway, prices, memory with recall, profile, and links that a file
        // cannot put into an answer.
        let builder = AgentHost::configured(config, self.data_folder)?
            .identity(AgentIdentity::new(self.options.name.as_deref().unwrap_or(self.name)))
            .instructions(INSTRUCTIONS)
            .budget(budget.with_max_tokens(max_tokens.unwrap_or(MAX_TURN_TOKENS)))
            .data_dir(self.data(settings.agent_profile.base_path()));
        let tools = host::tools(std::env::current_dir()?).into_iter();
        let builder = tools.fold(builder, AgentHostBuilder::tool);
        let builder = mcp::answered(builder, questions);
        // The web, HTTP interfaces and files, as the options ask for them.
        let builder = self.options.world().add_to(builder, config)?;
        Ok(outside.add_to(builder))
    }
}
