//! The search for settings that no part of the program reads.

use super::setting::Origin;
use super::{Config, ConfigError, Route, Setting, UnknownKey};
use crate::support::did_you_mean;

/// Returns the unknown settings below `section`. An unknown section is reported once, not once for each of its
/// settings.
pub(super) fn below(config: &Config, section: &[String]) -> Vec<UnknownKey> {
    let known = config.known();
    let mut unknown: Vec<UnknownKey> = Vec::new();
    let mut last: Option<&Route> = None;
    let settings = config.settings.iter().filter(|(route, _)| route.starts_with(section));
    for (route, setting) in settings.filter(|(route, _)| !known.contains_key(*route)) {
        // Settings come in the order of their routes, so those of one unknown section follow each other.
        let is_reported = last.is_some_and(|last| route.starts_with(last));
        let depth = (0..route.len())
            .take_while(|end| known.contains_key(&route[..=*end]))
            .count();
        if is_reported || (depth == 0 && is_foreign(setting)) {
            continue;
        }
        let siblings = known
            .iter()
            .filter(|(known, _)| known.len() == depth + 1 && known.starts_with(&route[..depth]));
        let siblings: Vec<String> = siblings.map(|(_, name)| name.clone()).collect();
        last = Some(route);
        if depth > 0 && siblings.is_empty() {
            // The subsystem that reads this section is not part of the host: its settings cannot be judged.
            continue;
        }
        unknown.push(UnknownKey {
            setting: setting.to_string(),
            meant: did_you_mean(&route[depth], siblings.iter().map(String::as_str)).map(str::to_owned),
            known: siblings,
            is_error: matches!(setting.origin, Origin::Variable { is_prefixed: true, .. }),
        });
    }
    unknown
}

/// Returns the unknown settings as warnings, or the first of them that is an error.
pub(super) fn check(unknown: Vec<UnknownKey>) -> Result<Vec<UnknownKey>, ConfigError> {
    match unknown.iter().find(|key| key.is_error) {
        Some(error) => Err(ConfigError::Unknown(error.clone())),
        None => Ok(unknown),
    }
}

/// Returns `true` for a variable without the prefix, which belongs to another program if it names no known section.
fn is_foreign(setting: &Setting) -> bool {
    matches!(setting.origin, Origin::Variable { is_prefixed: false, .. })
}
