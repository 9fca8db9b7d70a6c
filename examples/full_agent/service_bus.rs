//! The bus of tool services: a broker's, with fanout exchanges, which services of TrustGraph share.

#[cfg(feature = "rabbitmq")]
use std::path::Path;
use std::sync::Arc;

use rockbot::config::Config;
#[cfg(feature = "rabbitmq")]
use rockbot::message::rabbitmq::{ExchangeLayout, RabbitMqBus, RabbitMqSettings};
use rockbot::prelude::*;

/// Connects to the broker at `url`, or to the one in the section `RabbitMq`. Returns `None` if neither names one.
#[cfg(feature = "rabbitmq")]
pub(crate) async fn open(url: Option<&str>, config: &Config) -> Result<Option<Arc<dyn Bus>>, BoxError> {
    let settings = RabbitMqSettings::read(config, Path::new("."))?;
    let settings = match (url, settings) {
        (Some(url), settings) => settings.unwrap_or_default().with_url(url)?,
        (None, Some(settings)) => settings,
        (None, None) => return Ok(None),
    };
    let settings = settings.with_exchange_layout(ExchangeLayout::Fanout);
    let bus = RabbitMqBus::connect(settings).await.map_err(|error| {
        let cause = std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
        format!("{error}{cause}")
    })?;
    Ok(Some(Arc::new(bus)))
}

/// Returns `None`; this build has no broker.
#[cfg(not(feature = "rabbitmq"))]
pub(crate) async fn open(url: Option<&str>, config: &Config) -> Result<Option<Arc<dyn Bus>>, BoxError> {
    if url.is_some() || config.section("RabbitMq")?.is_set() {
        return Err("this program was built without brokers: build it with `--features rabbitmq`".into());
    }
    std::future::ready(Ok(None)).await
}
