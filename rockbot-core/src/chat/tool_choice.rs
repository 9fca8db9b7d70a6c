//! The constraint on the model's tool calls.

use serde::{Deserialize, Serialize};

use crate::ToolName;

/// A constraint on the model's tool calls: allowed, required or forbidden.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides. The default.
    #[default]
    Auto,
    /// No tool.
    None,
    /// Some tool.
    Required,
    /// This tool.
    Tool(ToolName),
}
