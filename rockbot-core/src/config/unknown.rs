//! What is set and nobody knows.

use std::fmt;

use super::setting::Origin;
use super::{Config, ConfigError, Route, Setting};
use crate::support::did_you_mean;

/// A setting that is without effect, since nobody asked for it: most likely its name is misspelt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownKey {
    /// The setting, and where it is set.
    pub setting: String,
    /// The name that was probably meant.
    pub meant: Option<String>,
    /// The names that are known where this one stands.
    pub known: Vec<String>,
    /// Whether it can be meant for nobody but us: a variable with the prefix `ROCKBOT_`. Other programs have no part
    /// in such a name, while a file may have sections for somebody else.
    pub is_error: bool,
}

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a setting", self.setting)?;
        match (&self.meant, &*self.known) {
            (Some(meant), _) => write!(f, "; did you mean `{meant}`?"),
            (None, []) => Ok(()),
            (None, known) => write!(f, "; known here: `{}`", known.join("`, `")),
        }
    }
}

/// What is unknown below `section`.
pub(super) fn below(config: &Config, section: &[String]) -> Vec<UnknownKey> {
    let known = config.known();
    let mut found: Vec<UnknownKey> = Vec::new();
    let mut last: Option<&Route> = None;
    let settings = config.settings.iter().filter(|(route, _)| route.starts_with(section));
    for (route, setting) in settings.filter(|(route, _)| !known.contains_key(*route)) {
        // A section that nobody knows is told of once.
        let is_told = last.is_some_and(|last| route.starts_with(last));
        let depth = (0..route.len())
            .take_while(|end| known.contains_key(&route[..=*end]))
            .count();
        if is_told || (depth == 0 && is_of_others(setting)) {
            continue;
        }
        let siblings = known
            .iter()
            .filter(|(known, _)| known.len() == depth + 1 && known.starts_with(&route[..depth]));
        let siblings: Vec<String> = siblings.map(|(_, name)| name.clone()).collect();
        last = Some(route);
        if depth > 0 && siblings.is_empty() {
            // Whoever reads this section is not here.
            continue;
        }
        found.push(UnknownKey {
            setting: setting.to_string(),
            meant: did_you_mean(&route[depth], siblings.iter().map(String::as_str)).map(str::to_owned),
            known: siblings,
            is_error: matches!(setting.origin, Origin::Variable { is_prefixed: true, .. }),
        });
    }
    found
}

/// The warnings, unless there is an error among them.
pub(super) fn check(unknown: Vec<UnknownKey>) -> Result<Vec<UnknownKey>, ConfigError> {
    match unknown.iter().find(|key| key.is_error) {
        Some(error) => Err(ConfigError::Unknown(error.clone())),
        None => Ok(unknown),
    }
}

/// A variable without the prefix that names no section of ours is another program's.
fn is_of_others(setting: &Setting) -> bool {
    matches!(setting.origin, Origin::Variable { is_prefixed: false, .. })
}
