//! The bus of the agent: a broker's where one is named, else one inside this process.

#[cfg(feature = "rabbitmq")]
use std::path::Path;
use std::sync::Arc;

use rockbot::config::Config;
#[cfg(feature = "rabbitmq")]
use rockbot::message::rabbitmq::{RabbitMqBus, RabbitMqSettings};
use rockbot::prelude::*;

/// Connects to the broker at `url`, or to the one in the section `RabbitMq`, whose other settings apply to both.
#[cfg(feature = "rabbitmq")]
pub(crate) async fn open(url: Option<&str>, config: &Config) -> Result<Arc<dyn Bus>, BoxError> {
    let settings = RabbitMqSettings::read(config, Path::new("."))?;
    let settings = match (url, settings) {
        (Some(url), settings) => settings.unwrap_or_default().with_url(url)?,
        (None, Some(settings)) => settings,
        (None, None) => return Ok(Arc::new(InProcessBus::new())),
    };
    Ok(Arc::new(
        RabbitMqBus::connect(settings)
            .await
            .map_err(|error| described(&error))?,
    ))
}

/// Returns the error with its cause, in one line.
#[cfg(feature = "rabbitmq")]
fn described(error: &rockbot::message::BusError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Opens a bus inside this process; this build has no broker.
#[cfg(not(feature = "rabbitmq"))]
pub(crate) async fn open(url: Option<&str>, config: &Config) -> Result<Arc<dyn Bus>, BoxError> {
    if url.is_some() || config.section("RabbitMq")?.is_set() {
        return Err("this program was built without brokers: build it with `--features rabbitmq`".into());
    }
    std::future::ready(Ok(Arc::new(InProcessBus::new()) as Arc<dyn Bus>)).await
}
