//! The parts that the consumers of all brokers share: a subscription as its consumers agree on
//! it, the work on its messages, the order of that work, and its end.

mod dead_letters;
mod lanes;
mod parts;
mod settled;
mod subscriptions;
mod worker;

use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::time::Duration;

use rockbot_core::config::{ConfigError, Section};
use rockbot_core::context::Trust;
use rockbot_core::messaging::{BusError, SubscribeOptions, TopicPattern};

pub(crate) use dead_letters::{log_dead_letter, reason_name, reason_named};
pub(crate) use parts::BusParts;
pub(crate) use settled::SettledKey;
pub(crate) use subscriptions::{ConsumerControl, Subscriptions};
pub(crate) use worker::Worker;

/// A subscription as its consumers agree on it.
#[derive(Debug, Clone)]
pub(crate) struct SubscriptionSpec {
    pub(crate) name: String,
    pub(crate) pattern: TopicPattern,
    pub(crate) options: SubscribeOptions,
}

impl SubscriptionSpec {
    /// Returns `true` if its messages are handled in the order of their partitions.
    pub(crate) fn is_partitioned(&self) -> bool {
        self.options.partition_by.is_some() && !self.options.ephemeral
    }
}

/// Returns a time between half of `delay` and all of it, so that the clients of a restarted
/// broker spread out.
pub(crate) fn jittered(delay: Duration) -> Duration {
    let random = RandomState::new().hash_one(()) % 1000;
    let part = u32::try_from(random).unwrap_or_default();
    delay / 2 + delay / 2 * part / 1000
}

/// Reads the setting `Trust` of a broker's section.
pub(crate) fn trust(section: &Section<'_>, default: Trust) -> Result<Trust, ConfigError> {
    let Some(setting) = section.setting("Trust") else {
        return Ok(default);
    };
    match setting.read::<String>()?.to_ascii_lowercase().as_str() {
        "untrusted" => Ok(Trust::Untrusted),
        "user" => Ok(Trust::User),
        "host" => Ok(Trust::Host),
        _ => Err(setting.invalid("`untrusted`, `user` or `host`")),
    }
}

/// Reads the further trusted certificates from the file of the setting `name`, if there is one.
pub(crate) async fn certificates(file: Option<PathBuf>, name: &str) -> Result<Option<String>, BusError> {
    let Some(file) = file else { return Ok(None) };
    let path = file.display().to_string();
    let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(file)).await;
    let text = read.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    text.map(Some).map_err(|error| BusError::Provider {
        context: format!("the certificates in `{path}` cannot be read: correct `{name}`"),
        source: error.into(),
    })
}
