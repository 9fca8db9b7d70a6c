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

/// A broker that is not connected yet.
#[derive(Debug)]
pub enum Broker {
    /// RabbitMQ.
    #[cfg(feature = "rabbitmq")]
    RabbitMq(Box<RabbitMqSettings>),
    /// Apache Pulsar.
    #[cfg(feature = "pulsar")]
    Pulsar(Box<PulsarSettings>),
}

/// Connects to the broker that [`Broker::read`] returns. With `is_shared` topics and headers are
/// as TrustGraph has them.
pub async fn open(url: Option<&str>, config: &Config, is_shared: bool) -> Result<Option<Arc<dyn Bus>>, BoxError> {
    match Broker::read(url, config)? {
        Some(broker) => Ok(Some(broker.connect(is_shared).await?)),
        None => Ok(None),
    }
}

impl Broker {
    /// Returns the broker at `url`, or the broker of the section `RabbitMq` or `Pulsar`, whose
    /// other settings apply to both. Returns `None` if neither names one.
    pub fn read(url: Option<&str>, config: &Config) -> Result<Option<Self>, BoxError> {
        let is_set = |name: &str| config.section(name).map(|section| section.is_set());
        let is_rabbitmq_set = is_set("RabbitMq")?;
        let is_pulsar_set = is_set("Pulsar")?;
        match url {
            Some(url) if url.starts_with("pulsar") => pulsar(Some(url), config),
            Some(url) => rabbitmq(Some(url), config),
            None if is_rabbitmq_set && is_pulsar_set => {
                Err("both `RabbitMq` and `Pulsar` are set: remove one of them, or name the broker by its URL".into())
            }
            None if is_pulsar_set => pulsar(None, config),
            None if is_rabbitmq_set => rabbitmq(None, config),
            None => Ok(None),
        }
    }

    /// Connects to it.
    #[cfg_attr(
        not(any(feature = "pulsar", feature = "rabbitmq")),
        expect(unused_variables, clippy::unused_async, reason = "there is no broker")
    )]
    pub async fn connect(self, is_shared: bool) -> Result<Arc<dyn Bus>, BoxError> {
        match self {
            #[cfg(feature = "rabbitmq")]
            Self::RabbitMq(mut settings) => {
                if is_shared {
                    *settings = settings.with_exchange_layout(ExchangeLayout::Fanout);
                }
                let bus = RabbitMqBus::connect(*settings).await;
                Ok(Arc::new(bus.map_err(|error| described(&error))?))
            }
            #[cfg(feature = "pulsar")]
            Self::Pulsar(mut settings) => {
                if is_shared {
                    *settings = settings.with_topic_layout(TopicLayout::TrustGraph);
                }
                let bus = PulsarBus::connect(*settings).await;
                Ok(Arc::new(bus.map_err(|error| described(&error))?))
            }
        }
    }
}

#[cfg(feature = "rabbitmq")]
fn rabbitmq(url: Option<&str>, config: &Config) -> Result<Option<Broker>, BoxError> {
    let settings = RabbitMqSettings::read(config, Path::new("."))?.unwrap_or_default();
    let settings = match url {
        Some(url) => settings.with_url(url)?,
        None => settings,
    };
    Ok(Some(Broker::RabbitMq(Box::new(settings))))
}

#[cfg(feature = "pulsar")]
fn pulsar(url: Option<&str>, config: &Config) -> Result<Option<Broker>, BoxError> {
    let settings = PulsarSettings::read(config, Path::new("."))?.unwrap_or_default();
    let settings = match url {
        Some(url) => settings.with_url(url)?,
        None => settings,
    };
    Ok(Some(Broker::Pulsar(Box::new(settings))))
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
fn rabbitmq(_: Option<&str>, _: &Config) -> Result<Option<Broker>, BoxError> {
    Err("this program was built without RabbitMQ: build it with `--features rabbitmq`".into())
}

#[cfg(not(feature = "pulsar"))]
fn pulsar(_: Option<&str>, _: &Config) -> Result<Option<Broker>, BoxError> {
    Err("this program was built without Pulsar: build it with `--features pulsar`".into())
}
