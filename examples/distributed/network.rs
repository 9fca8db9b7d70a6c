//! The bus between the parts: a broker's, or one inside this process.

use std::sync::Arc;
use std::time::Duration;

use rockbot::config::Config;
#[cfg(feature = "rabbitmq")]
use rockbot::message::rabbitmq::{RabbitMqBus, RabbitMqSettings};
use rockbot::prelude::*;
#[cfg(feature = "rabbitmq")]
use rockbot::{IdSource as _, RandomIds};

use crate::arguments::Arguments;
use crate::broker;

/// The bus of one part.
pub(crate) enum Network {
    InProcess(Arc<InProcessBus>),
    #[cfg(feature = "rabbitmq")]
    Broker {
        bus: Arc<RabbitMqBus>,
        name: String,
    },
    /// A broker's default topics, which other programs may use, too.
    Shared(Arc<dyn Bus>),
}

impl Network {
    /// Connects to the broker that the arguments name. On RabbitMQ each run has exchanges of its own,
    /// so that it meets no other program's messages. Pulsar has no topics that a program could make
    /// for itself and delete.
    pub(crate) async fn open(arguments: &Arguments) -> Result<Self, BoxError> {
        match &arguments.bus {
            Some(url) if url.starts_with("pulsar") => {
                let bus = broker::open(Some(url), &Config::new(), false).await?;
                Ok(Self::Shared(bus.ok_or("the URL names no broker")?))
            }
            Some(url) => Self::connect(url, arguments.network.clone()).await,
            None => Ok(Self::InProcess(Arc::new(InProcessBus::new()))),
        }
    }

    #[cfg(feature = "rabbitmq")]
    async fn connect(url: &str, name: Option<String>) -> Result<Self, BoxError> {
        let name = name.unwrap_or_else(|| format!("distributed-{}", RandomIds.next_id()));
        let mut settings = RabbitMqSettings::from_url(url)?;
        settings.exchange_name.clone_from(&name);
        settings.dead_letter_exchange_name = format!("{name}.dlx");
        settings.queue_prefix.clone_from(&name);
        let bus = Arc::new(RabbitMqBus::connect(settings).await?);
        Ok(Self::Broker { bus, name })
    }

    #[cfg(not(feature = "rabbitmq"))]
    #[expect(clippy::unused_async, reason = "it is asynchronous with the feature `rabbitmq`")]
    async fn connect(_: &str, _: Option<String>) -> Result<Self, BoxError> {
        Err("this program was built without RabbitMQ: build it with `--features rabbitmq`".into())
    }

    /// Returns the bus.
    pub(crate) fn bus(&self) -> Arc<dyn Bus> {
        match self {
            Self::InProcess(bus) => bus.clone(),
            Self::Shared(bus) => bus.clone(),
            #[cfg(feature = "rabbitmq")]
            Self::Broker { bus, .. } => bus.clone(),
        }
    }

    /// Returns the name of the exchange that the parts share.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::InProcess(_) | Self::Shared(_) => "shared",
            #[cfg(feature = "rabbitmq")]
            Self::Broker { name, .. } => name,
        }
    }

    /// Closes the bus, and deletes what this part had declared on the broker.
    pub(crate) async fn close(&self) -> Result<(), BoxError> {
        #[cfg(feature = "rabbitmq")]
        if let Self::Broker { bus, .. } = self {
            bus.delete_topology().await?;
        }
        let _ = self.bus().close(Duration::from_secs(1)).await;
        Ok(())
    }
}
