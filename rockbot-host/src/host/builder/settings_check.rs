//! The check that each setting of a configuration has an effect, once all parts of the host have
//! read theirs.
//!
//! The settings are checked against the settings that were read, not against a list: a part that
//! reads a setting makes it known, and the host checks once all parts have declared. A list would
//! be wrong for the sections of programs and of subsystems of others.

use rockbot_core::BoxError;
use rockbot_core::config::{Config, ConfigError, UnknownKey};

use crate::settings::{SECTIONS_OF_BROKERS, SECTIONS_OF_PARTS};

/// The problem of a section without the part that reads it.
#[derive(Debug, thiserror::Error)]
#[error("{key}; {advice}, or remove the section")]
struct UnreadSection {
    key: UnknownKey,
    advice: &'static str,
}

/// Returns the settings that keep the host from being built, and logs the others that have no
/// effect.
pub(super) fn check_settings(config: &Config, denies_unread: bool, has_bus: bool) -> Vec<BoxError> {
    let unknown = config.unknown().into_iter();
    let unknown = unknown.filter(|key| !(has_bus && SECTIONS_OF_BROKERS.contains(&key.name.as_str())));
    let mut problems: Vec<BoxError> = Vec::new();
    for key in unknown {
        let is_error = key.is_error || (denies_unread && key.is_unread);
        let part = SECTIONS_OF_PARTS.iter().find(|(name, _)| *name == key.name);
        let problem: BoxError = match part.filter(|_| key.is_unread) {
            Some((_, advice)) => UnreadSection { key, advice }.into(),
            None => ConfigError::Unknown(key).into(),
        };
        if is_error {
            problems.push(problem);
        } else {
            tracing::warn!("{problem}");
        }
    }
    problems
}
