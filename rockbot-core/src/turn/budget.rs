//! How much a turn may spend. Each limit says what it counts.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::chat::MicroUsd;

/// The limits of a turn. When one is reached the turn ends gracefully: one last answer without tools,
/// which may go beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Budget {
    /// How many times the model may be asked. Default 50.
    pub max_model_calls: u32,
    /// How many tool calls may run. Default 200.
    pub max_tool_calls: u32,
    /// How long the turn may work; waiting for an approval does not count. Default 10 minutes.
    pub max_wall_clock: Duration,
    /// How many tokens, input and output together, as the provider counts them. Default: no limit.
    pub max_tokens: Option<u64>,
    /// How much money, questions of judges included. Answers whose price nobody knows do not count, and a host refuses
    /// to be built when it knows that it has no price of a model. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<MicroUsd>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            max_model_calls: 50,
            max_tool_calls: 200,
            max_wall_clock: Duration::from_secs(600),
            max_tokens: None,
            max_cost: None,
        }
    }
}

/// The limit that a turn reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BudgetLimit {
    /// [`Budget::max_model_calls`].
    ModelCalls,
    /// [`Budget::max_tool_calls`].
    ToolCalls,
    /// [`Budget::max_wall_clock`].
    WallClock,
    /// [`Budget::max_tokens`].
    Tokens,
    /// [`Budget::max_cost`].
    Cost,
}

impl fmt::Display for BudgetLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ModelCalls => "number of model calls",
            Self::ToolCalls => "number of tool calls",
            Self::WallClock => "time",
            Self::Tokens => "number of tokens",
            Self::Cost => "money",
        })
    }
}
