//! The setting which of the servers' tools a model is shown.
//!
//! Each server has one line in the first request, the line of its group; all lines together have
//! words of 1 000 tokens at most. The tools of small servers stand there outright, within
//! `Mcp.MaxShownTokens`, in the order of the configuration and whether they were called or not,
//! so that the text is the same after each start.

use rockbot_core::config::{FromSetting, Value};

/// The servers whose tools stand in the requests to a model.
///
/// Each definition costs tokens in every request, and model providers refuse more than 128 tools.
/// Tools that are not shown can be called: a model finds them by the groups of `activate_tools`,
/// one for each server, or by `mcp_find_tools`. The group of a server with more than 40 tools has
/// a tool that searches them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum McpExposure {
    /// No tool of a server is registered. The model calls them by `mcp_invoke_tool`.
    Off,
    /// The tools of all servers are shown, up to the maximum number, and the others on demand.
    Eager,
    /// All tools are shown on demand.
    Lazy,
    /// The tools of small servers are shown, as far as whole servers fit the budget
    /// [`McpTools::max_shown_tokens`](crate::McpTools::max_shown_tokens) in the order of the
    /// configuration, and the tools of the three servers that were called last, up to the maximum
    /// number. The others are shown on demand.
    #[default]
    Pinned,
}

impl FromSetting for McpExposure {
    const EXPECTED: &'static str = "`off`, `eager`, `lazy` or `pinned`";

    fn from_value(value: &Value) -> Option<Self> {
        match &*value.as_text()?.to_ascii_lowercase() {
            "off" => Some(Self::Off),
            "eager" => Some(Self::Eager),
            "lazy" => Some(Self::Lazy),
            "pinned" => Some(Self::Pinned),
            _ => None,
        }
    }
}
