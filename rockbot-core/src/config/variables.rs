//! Settings in environment variables.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::setting::Origin;
use super::{Config, Setting, Value};

/// The prefix of variables that are meant for this program only.
const PREFIX: &str = "ROCKBOT_";

/// Adds the settings of `variables`. Variables with the prefix override variables without it. The
/// map is sorted, so the same variable wins each time among names that differ in case only.
pub(super) fn add(config: &mut Config, variables: BTreeMap<OsString, OsString>) {
    config.layers += 2;
    let layer = config.layers;
    for (name, value) in variables {
        // A name that is not UTF-8 cannot be a setting.
        let Some(name) = name.to_str().filter(|_| !value.is_empty()) else {
            continue;
        };
        let upper = name.to_ascii_uppercase();
        let key = upper.strip_prefix(PREFIX);
        let setting = Setting {
            value: read(&value),
            origin: Origin::Variable {
                name: name.to_owned(),
                is_prefixed: key.is_some(),
            },
            layer: layer - u32::from(key.is_none()),
        };
        if let Some(route) = route(key.unwrap_or(&upper))
            && config
                .settings
                .get(&route)
                .is_none_or(|other| other.layer <= setting.layer)
        {
            config.settings.insert(route, setting.clone());
        }
        config.variables.insert(upper, setting);
    }
}

/// Returns the route of a variable's name, or `None` if it has fewer than two parts: settings are
/// always in sections.
fn route(key: &str) -> Option<Vec<String>> {
    let route: Vec<_> = key.split("__").map(str::to_ascii_lowercase).collect();
    let is_setting = route.len() > 1 && route.iter().all(|name| !name.is_empty());
    is_setting.then_some(route)
}

fn read(value: &OsStr) -> Value {
    value.to_str().map_or(Value::Bytes, |text| Value::Text(text.into()))
}
