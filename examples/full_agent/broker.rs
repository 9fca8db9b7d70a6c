//! The broker of a program: RabbitMQ or Pulsar, by the URL or by the section of the configuration.

#[cfg(any(feature = "pulsar", feature = "rabbitmq"))]
use std::path::Path;
use std::sync::Arc;

use rockbot::config::Config;
#[cfg(any(feature = "pulsar", feature = "rabbitmq"))]
use rockbot::message::BusError;
#[cfg(feature = "pulsar")]
use rockbot::message::pulsar::{PulsarBus, PulsarSettings, TopicLayout};
#[cfg(feature = "rabbitmq")]
use rockbot::message::rabbitmq::{ExchangeLayout, RabbitMqBus, RabbitMqSettings};
use rockbot::prelude::*;

/// Connects to the broker at `url`, or to the one in the section `RabbitMq` or `Pulsar`, whose other settings apply to
/// both. Returns `None` if neither names one. With `is_shared` topics and headers are as TrustGraph has them.
pub(crate) async fn open(
    url: Option<&str>,
    config: &Config,
    is_shared: bool,
) -> Result<Option<Arc<dyn Bus>>, BoxError> {
    let is_pulsar = match url {
        Some(url) => url.starts_with("pulsar"),
        None => config.section("Pulsar")?.is_set(),
    };
    match is_pulsar {
        true => pulsar(url, config, is_shared).await,
        false => rabbitmq(url, config, is_shared).await,
    }
}

#[cfg(feature = "rabbitmq")]
async fn rabbitmq(url: Option<&str>, config: &Config, is_shared: bool) -> Result<Option<Arc<dyn Bus>>, BoxError> {
    let settings = RabbitMqSettings::read(config, Path::new("."))?;
    let mut settings = match (url, settings) {
        (Some(url), settings) => settings.unwrap_or_default().with_url(url)?,
        (None, Some(settings)) => settings,
        (None, None) => return Ok(None),
    };
    if is_shared {
        settings = settings.with_exchange_layout(ExchangeLayout::Fanout);
    }
    let bus = RabbitMqBus::connect(settings)
        .await
        .map_err(|error| described(&error))?;
    Ok(Some(Arc::new(bus)))
}

#[cfg(feature = "pulsar")]
async fn pulsar(url: Option<&str>, config: &Config, is_shared: bool) -> Result<Option<Arc<dyn Bus>>, BoxError> {
    let settings = PulsarSettings::read(config, Path::new("."))?.unwrap_or_default();
    let mut settings = match url {
        Some(url) => settings.with_url(url)?,
        None => settings,
    };
    if is_shared {
        settings = settings.with_topic_layout(TopicLayout::TrustGraph);
    }
    let bus = PulsarBus::connect(settings).await.map_err(|error| described(&error))?;
    Ok(Some(Arc::new(bus)))
}

/// Returns the error with its cause, in one line.
#[cfg(any(feature = "pulsar", feature = "rabbitmq"))]
fn described(error: &BusError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(not(feature = "rabbitmq"))]
async fn rabbitmq(url: Option<&str>, config: &Config, _: bool) -> Result<Option<Arc<dyn Bus>>, BoxError> {
    if url.is_some() || config.section("RabbitMq")?.is_set() {
        return Err("this program was built without RabbitMQ: build it with `--features rabbitmq`".into());
    }
    std::future::ready(Ok(None)).await
}

#[cfg(not(feature = "pulsar"))]
async fn pulsar(_: Option<&str>, _: &Config, _: bool) -> Result<Option<Arc<dyn Bus>>, BoxError> {
    let without = "this program was built without Pulsar: build it with `--features pulsar`";
    std::future::ready(Err(without.into())).await
}
