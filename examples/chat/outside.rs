//! What other processes give the agent over a broker: the tools of `--tool-services`, and the MCP servers of `--mcp-bus`.

use std::path::Path;
use std::sync::Arc;

use rockbot::agent::AgentHostBuilder;
use rockbot::config::Config;
use rockbot::prelude::*;
use rockbot::tool_services::{DescriptorFolder, ToolServices};

use crate::arguments::Arguments;
use crate::{bus, service_bus};

/// The connections that the arguments ask for.
pub(crate) struct Outside {
    services: Option<ToolServices>,
    bridges: Option<Arc<dyn Bus>>,
}

impl Outside {
    /// Connects to the brokers.
    pub(crate) async fn connect(arguments: &Arguments, config: &Config) -> Result<Self, BoxError> {
        let bridges = match &arguments.mcp_bus {
            Some(url) => Some(bus::open(Some(url), config).await?),
            None => None,
        };
        Ok(Self {
            services: services(arguments, config).await?,
            bridges,
        })
    }

    /// Returns the same parts without a broker, for a list of the agent's parts.
    pub(crate) fn unconnected(arguments: &Arguments) -> Self {
        let nowhere = || -> Arc<dyn Bus> { Arc::new(InProcessBus::new()) };
        let services = arguments.tool_services.as_ref().map(|folder| {
            report(folder);
            ToolServices::new().folder(folder).bus(nowhere())
        });
        Self {
            services,
            bridges: arguments.mcp_bus.as_ref().map(|_| nowhere()),
        }
    }

    /// Adds them to the agent.
    pub(crate) fn add_to(self, builder: AgentHostBuilder) -> AgentHostBuilder {
        let builder = self.services.into_iter().fold(builder, AgentHostBuilder::add);
        match self.bridges {
            Some(bus) => builder.bus(bus),
            None => builder,
        }
    }
}

/// Returns the subsystem of the folder of descriptors, connected to the broker, if the arguments name a folder.
async fn services(arguments: &Arguments, config: &Config) -> Result<Option<ToolServices>, BoxError> {
    let Some(folder) = &arguments.tool_services else {
        return Ok(None);
    };
    report(folder);
    let bus = service_bus::open(None, config).await?.ok_or(
        "`--tool-services` needs the broker that the services use: name it in the section RabbitMq, or set \
         ROCKBOT_RABBITMQ__HOSTNAME",
    )?;
    Ok(Some(ToolServices::new().folder(folder).bus(bus)))
}

/// Says what is wrong with the descriptors. The chat starts without those.
fn report(folder: &Path) {
    for problem in DescriptorFolder::new(folder).problems() {
        eprintln!("warning: {problem}");
    }
}
