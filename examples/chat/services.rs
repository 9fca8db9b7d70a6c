//! The tools of `--tool-services`: other processes run them, and descriptors in a folder describe them.

use std::path::Path;
use std::sync::Arc;

use rockbot::config::Config;
use rockbot::prelude::*;
use rockbot::tool_services::{DescriptorFolder, ToolServices};

use crate::arguments::Arguments;
use crate::service_bus;

/// Returns the subsystem of the folder, connected to the broker, if the arguments name a folder.
pub(crate) async fn open(arguments: &Arguments, config: &Config) -> Result<Option<ToolServices>, BoxError> {
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

/// Returns the subsystem of the folder without a broker, for a list of the agent's parts.
pub(crate) fn unconnected(arguments: &Arguments) -> Option<ToolServices> {
    let folder = arguments.tool_services.as_ref()?;
    report(folder);
    Some(ToolServices::new().folder(folder).bus(Arc::new(InProcessBus::new())))
}

/// Says what is wrong with the descriptors. The chat starts without those.
fn report(folder: &Path) {
    for problem in DescriptorFolder::new(folder).problems() {
        eprintln!("warning: {problem}");
    }
}
