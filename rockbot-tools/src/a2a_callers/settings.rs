//! The settings of both doors that are alike: lists, tools, and trust.

use rockbot_core::config::{ConfigError, Section};
use rockbot_core::tool::ToolSelector;

use super::CallerTrust;

/// Reads a list of tools: a name, `source:SOURCE`, or `group:GROUP`.
pub(crate) fn selectors(section: &Section<'_>, name: &str) -> Result<Option<Vec<ToolSelector>>, ConfigError> {
    let selector = |text: &String| match text.split_once(':') {
        Some(("source", source)) => ToolSelector::source(source),
        Some(("group", group)) => ToolSelector::group(group),
        _ => ToolSelector::from(text.as_str()),
    };
    Ok(texts(section, name)?.map(|texts| texts.iter().map(selector).collect()))
}

/// Reads a trust: `observe`, `learn`, `propose` or `act`.
pub(crate) fn trust(section: &Section<'_>, name: &str) -> Result<Option<CallerTrust>, ConfigError> {
    let Some(setting) = section.setting(name) else {
        return Ok(None);
    };
    let read = setting.read::<String>()?.parse();
    read.map(Some)
        .map_err(|()| setting.invalid("`observe`, `learn`, `propose` or `act`"))
}

/// Returns the sections of a list, in order.
pub(crate) fn items<'c>(section: &Section<'c>, name: &str) -> Result<Vec<Section<'c>>, ConfigError> {
    let list = section.section(name)?;
    let mut names = list.names();
    names.sort_by_key(|name| name.parse::<usize>().unwrap_or(usize::MAX));
    names.iter().map(|name| list.section(name)).collect()
}

/// Reads a list, or a text with commas.
pub(crate) fn texts(section: &Section<'_>, name: &str) -> Result<Option<Vec<String>>, ConfigError> {
    let Some(setting) = section.setting(name) else {
        return Ok(None);
    };
    Ok(Some(match setting.read::<String>() {
        Ok(text) => text.split(',').map(|name| name.trim().to_owned()).collect(),
        Err(_) => setting.read()?,
    }))
}

/// Returns the error of a setting that is missing.
pub(crate) fn missing(section: &Section<'_>, name: &str, expected: &'static str) -> ConfigError {
    ConfigError::Invalid {
        setting: section.path(name),
        expected: expected.into(),
        found: "nothing",
    }
}
