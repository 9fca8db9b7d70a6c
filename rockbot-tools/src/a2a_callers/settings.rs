//! The settings of both doors that are alike: tools, and trust.

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
    Ok(section.texts(name)?.map(|texts| texts.iter().map(selector).collect()))
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
