//! What other processes give the agent: the bus of the settings, of `--mcp-bus` or of `--agents`,
//! the tools of `--tool-services`, the tools of workers, and the stores of a database.

use std::path::Path;
use std::sync::Arc;

use rockbot::agent::AgentHostBuilder;
use rockbot::config::Config;
use rockbot::prelude::*;
use rockbot::tool::RemoteTools;
use rockbot::tool_services::{DescriptorFolder, ToolServices};

use super::broker::{self, Broker};
use super::database::Database;
use super::service_bus;

/// The connections and parts that the options and the settings ask for.
pub(crate) struct Outside {
    services: Option<ToolServices>,
    workers: Option<RemoteTools>,
    bus: Option<Arc<dyn Bus>>,
    database: Database,
}

impl Outside {
    /// Connects to the brokers and the database.
    pub(crate) async fn connect(
        bus: Option<&str>,
        descriptors: Option<&Path>,
        config: &Config,
    ) -> Result<Self, BoxError> {
        let services = match services(descriptors, config)? {
            Some(services) => Some(services.bus(service_bus::open(None, config).await?.ok_or(NO_BROKER)?)),
            None => None,
        };
        Ok(Self {
            services,
            workers: workers(config)?,
            bus: broker::open(bus, config, false).await?,
            database: Database::connect(config).await?,
        })
    }

    /// Returns the same parts without a broker and a database, for a list of the agent's parts.
    pub(crate) fn unconnected(
        bus: Option<&str>,
        descriptors: Option<&Path>,
        config: &Config,
    ) -> Result<Self, BoxError> {
        let nowhere = || -> Arc<dyn Bus> { Arc::new(InProcessBus::new()) };
        let services = match services(descriptors, config)? {
            Some(services) => Some(services.bus(Broker::read(None, config)?.map(|_| nowhere()).ok_or(NO_BROKER)?)),
            None => None,
        };
        Ok(Self {
            services,
            workers: workers(config)?,
            bus: Broker::read(bus, config)?.map(|_| nowhere()),
            database: Database::unconnected(config)?,
        })
    }

    /// Adds them to the agent.
    pub(crate) fn add_to(self, builder: AgentHostBuilder) -> AgentHostBuilder {
        let builder = self.services.into_iter().fold(builder, AgentHostBuilder::add);
        let builder = self.workers.into_iter().fold(builder, AgentHostBuilder::add);
        let builder = self.database.add_to(builder);
        match self.bus {
            Some(bus) => builder.bus(bus),
            None => builder,
        }
    }
}

const NO_BROKER: &str = "`--tool-services` needs the broker that the services use: name it in the section RabbitMq, or set \
                         ROCKBOT_RABBITMQ__HOSTNAME; so does the section ToolServices";

/// Returns the subsystem of tool services, still without a bus, if the options name a folder of
/// descriptors or the settings ask for it.
fn services(descriptors: Option<&Path>, config: &Config) -> Result<Option<ToolServices>, BoxError> {
    let Some(folder) = descriptors else {
        let is_set = config.section("ToolServices")?.is_set();
        return Ok(is_set.then(ToolServices::new));
    };
    report(folder);
    Ok(Some(ToolServices::new().folder(folder)))
}

/// Returns the subsystem of workers' tools, if the settings ask for it.
fn workers(config: &Config) -> Result<Option<RemoteTools>, BoxError> {
    let is_set = config.section("RemoteTools")?.is_set();
    Ok(is_set.then(RemoteTools::new))
}

/// Reports the problems of descriptors. The agent starts without wrong descriptors.
fn report(folder: &Path) {
    for problem in DescriptorFolder::new(folder).problems() {
        eprintln!("warning: {problem}");
    }
}
