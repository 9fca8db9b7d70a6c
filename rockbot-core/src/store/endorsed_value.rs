//! A value that a user has endorsed for a conversation.

use rockbot_provenance::{OriginKind, ValueOrigin};
use serde::{Deserialize, Serialize};

use crate::ToolName;

/// A value that a user has endorsed for a conversation: calls of the tool with it are the user's
/// own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EndorsedValue {
    /// Name of the tool.
    pub tool: ToolName,
    /// Argument, such as `to`; empty if the user endorsed the call of the tool as such.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub argument: String,
    /// Value of the argument.
    pub value: String,
}

impl EndorsedValue {
    /// Creates the value of an argument of `tool`; an empty `argument` endorses calls as such.
    pub fn new(tool: impl Into<ToolName>, argument: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            tool: tool.into(),
            argument: argument.into(),
            value: value.into(),
        }
    }

    /// Returns the doubtful values among `origins`, which a user endorses for calls of `tool`.
    ///
    /// Values that a question showed cut are left out.
    pub fn among(origins: &[ValueOrigin], tool: &ToolName) -> Vec<Self> {
        let is_whole = |origin: &&ValueOrigin| !origin.value.ends_with('…');
        let is_doubtful = |origin: &&ValueOrigin| origin.is_doubtful() && origin.kind != OriginKind::Repeated;
        let endorsed = |origin: &ValueOrigin| Self::new(tool.clone(), &*origin.argument, &*origin.value);
        origins
            .iter()
            .filter(is_doubtful)
            .filter(is_whole)
            .map(endorsed)
            .collect()
    }
}
