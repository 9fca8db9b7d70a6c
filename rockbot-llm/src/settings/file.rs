//! The section `LLM` of a JSON file.

use std::path::Path;

use rockbot_core::chat::ModelTier;
use serde_json::{Map, Value};

use super::{Field, Found, LlmConfigError, Origin};

/// Adds what the file at `path` sets. Other sections, and other members of this one, are none of ours.
pub(super) fn read(path: &Path, found: &mut Found) -> Result<(), LlmConfigError> {
    let text = std::fs::read(path).map_err(|source| LlmConfigError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&text);
    // Only the place of the error is kept: its words may quote the file.
    let json: Value = serde_json::from_slice(text).map_err(|error| LlmConfigError::NotJson {
        path: path.to_owned(),
        line: error.line(),
        column: error.column(),
    })?;
    let root = object(&json, || format!("the whole of `{}`", path.display()))?;
    let Some(section) = member(root, "LLM") else {
        return Ok(());
    };
    let section = object(section, || setting("LLM", path))?;
    read_tier(section, ModelTier::Balanced, "LLM", path, found)?;
    for tier in ModelTier::ALL {
        if let Some(members) = member(section, tier.name()) {
            let prefix = format!("LLM.{}", tier.name());
            let members = object(members, || setting(&prefix, path))?;
            read_tier(members, tier, &prefix, path, found)?;
        }
    }
    Ok(())
}

fn read_tier(
    members: &Map<String, Value>,
    tier: ModelTier,
    prefix: &str,
    path: &Path,
    found: &mut Found,
) -> Result<(), LlmConfigError> {
    for field in Field::ALL {
        let name = setting(&format!("{prefix}.{}", field.name()), path);
        match member(members, field.name()) {
            None => {}
            Some(Value::String(value)) => found.add(tier, field, Origin::File, name, value),
            Some(_) => {
                return Err(LlmConfigError::WrongType {
                    setting: name,
                    expected: "a string",
                });
            }
        }
    }
    Ok(())
}

/// The member of this name in any case; `null` counts as unset.
fn member<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let mut same = members
        .iter()
        .filter(|(key, value)| key.eq_ignore_ascii_case(name) && !value.is_null());
    same.next().map(|(_, value)| value)
}

fn object(value: &Value, name: impl FnOnce() -> String) -> Result<&Map<String, Value>, LlmConfigError> {
    value.as_object().ok_or_else(|| LlmConfigError::WrongType {
        setting: name(),
        expected: "an object",
    })
}

fn setting(name: &str, path: &Path) -> String {
    format!("`{name}` in `{}`", path.display())
}
