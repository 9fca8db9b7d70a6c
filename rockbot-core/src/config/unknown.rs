//! The search for settings that no part of the program reads.

use std::collections::BTreeMap;

use rockbot_schema::did_you_mean;

use super::setting::Origin;
use super::{Config, ConfigError, Known, Route, Setting, UnknownKey};

/// Returns the unknown settings below `section`. An unknown or unread section is reported once,
/// not once for each of its settings.
pub(super) fn below(config: &Config, section: &[String]) -> Vec<UnknownKey> {
    let known = config.known().clone();
    let mut unknown: Vec<UnknownKey> = Vec::new();
    let mut last: Option<&[String]> = None;
    let settings = config.settings.iter().filter(|(route, _)| route.starts_with(section));
    for (route, setting) in settings.filter(|(route, _)| !known.contains_key(*route)) {
        // Settings come in the order of their routes, so the settings of an unknown section follow
        // each other.
        if last.is_some_and(|last| route.starts_with(last)) {
            continue;
        }
        let depth = (0..route.len())
            .take_while(|end| known.contains_key(&route[..=*end]))
            .count();
        let siblings = siblings(&known, &route[..depth]);
        let is_unread = depth > 0 && siblings.is_empty();
        if (depth == 0 || is_unread) && is_foreign(setting) {
            continue;
        }
        let reported = if is_unread { &route[..depth] } else { &route[..] };
        last = Some(reported);
        unknown.push(UnknownKey {
            name: config.full_name(reported),
            // A section that only variables set has no place of its own.
            setting: config.settings.get(reported).unwrap_or(setting).to_string(),
            meant: did_you_mean(&route[depth], siblings.iter().map(String::as_str)).map(str::to_owned),
            known: siblings,
            is_unread,
            is_error: !is_unread && !is_foreign(setting),
        });
    }
    unknown
}

/// Returns the known names in a section.
fn siblings(known: &BTreeMap<Route, Known>, section: &[String]) -> Vec<String> {
    let siblings = known
        .iter()
        .filter(|(known, _)| known.len() == section.len() + 1 && known.starts_with(section));
    siblings.map(|(_, known)| known.name.clone()).collect()
}

/// Returns the unknown settings as warnings, or the first of them that is an error.
pub(super) fn check(unknown: Vec<UnknownKey>) -> Result<Vec<UnknownKey>, ConfigError> {
    match unknown.iter().find(|key| key.is_error) {
        Some(error) => Err(ConfigError::Unknown(error.clone())),
        None => Ok(unknown),
    }
}

/// Returns `true` for a variable without the prefix, which may belong to another program.
fn is_foreign(setting: &Setting) -> bool {
    matches!(setting.origin, Origin::Variable { is_prefixed: false, .. })
}
