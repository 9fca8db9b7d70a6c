//! The depth of a model's reasoning.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The depth of a model's reasoning before it answers. The levels that exist depend on the model.
///
/// ```
/// use rockbot_core::chat::ReasoningEffort;
///
/// assert_eq!(ReasoningEffort::from("High"), ReasoningEffort::High);
/// assert_eq!(ReasoningEffort::from("extreme").as_str(), "extreme");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum ReasoningEffort {
    /// No reasoning, `none`.
    None,
    /// As little as possible.
    Minimal,
    /// Less than usual.
    Low,
    /// The usual amount.
    Medium,
    /// More than usual.
    High,
    /// More than [`ReasoningEffort::High`], `xhigh`.
    XHigh,
    /// As much as the model can.
    Max,
    /// A level that only some provider knows, sent as it is written.
    Other(Arc<str>),
}

impl ReasoningEffort {
    const KNOWN: [Self; 7] = [
        Self::None,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::XHigh,
        Self::Max,
    ];

    /// Returns the level as providers spell it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
            Self::Other(level) => level,
        }
    }
}

impl From<&str> for ReasoningEffort {
    /// Converts a level without regard to case.
    fn from(text: &str) -> Self {
        let known = Self::KNOWN
            .into_iter()
            .find(|level| level.as_str().eq_ignore_ascii_case(text));
        known.unwrap_or_else(|| Self::Other(text.into()))
    }
}

impl From<String> for ReasoningEffort {
    fn from(text: String) -> Self {
        Self::from(&*text)
    }
}

impl From<ReasoningEffort> for String {
    fn from(effort: ReasoningEffort) -> Self {
        effort.as_str().to_owned()
    }
}
