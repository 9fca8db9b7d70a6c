//! The bus of tool services: a broker's, with the topics of TrustGraph, whose services share it.

use std::sync::Arc;

use rockbot::config::Config;
use rockbot::prelude::*;

use super::broker;

/// Connects to the broker at `url`, or to the broker of the configuration. Returns `None` if
/// neither names one.
pub async fn open(url: Option<&str>, config: &Config) -> Result<Option<Arc<dyn Bus>>, BoxError> {
    broker::open(url, config, true).await
}
