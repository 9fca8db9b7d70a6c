//! The bus of the agent: a broker's where one is named, else one inside this process.

use std::sync::Arc;

use rockbot::config::Config;
use rockbot::prelude::*;

use super::broker;

/// Connects to the broker at `url`, or to the broker of the configuration.
pub async fn open(url: Option<&str>, config: &Config) -> Result<Arc<dyn Bus>, BoxError> {
    let bus = broker::open(url, config, false).await?;
    Ok(bus.unwrap_or_else(|| Arc::new(InProcessBus::new())))
}
