//! The budget of a turn: limits of calls, time, tokens and cost.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::chat::MicroUsd;

/// The limits of a turn. A turn that reaches one ends gracefully: it gets one last answer without
/// tools, which may exceed the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Budget {
    /// Maximum number of model calls. Default 50.
    pub max_model_calls: u32,
    /// Maximum number of tool calls. Default 200.
    pub max_tool_calls: u32,
    /// Maximum working time; the time spent waiting for an approval does not count. Default 10 minutes.
    pub max_wall_clock: Duration,
    /// Maximum number of tokens, input and output together, as the provider counts them. Default: no
    /// limit.
    pub max_tokens: Option<u64>,
    /// Maximum cost, out-of-band calls included. A turn with this limit ends at its first answer
    /// without a known price ([`BudgetLimit::UnknownPrice`]), and a host with it is not built if a
    /// model has no price. Default: no limit.
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

impl Budget {
    /// Sets the maximum number of model calls. Default 50.
    #[must_use]
    pub fn with_max_model_calls(mut self, max_model_calls: u32) -> Self {
        self.max_model_calls = max_model_calls;
        self
    }

    /// Sets the maximum number of tool calls. Default 200.
    #[must_use]
    pub fn with_max_tool_calls(mut self, max_tool_calls: u32) -> Self {
        self.max_tool_calls = max_tool_calls;
        self
    }

    /// Sets the maximum working time; the time spent waiting for an approval does not count. Default
    /// 10 minutes.
    #[must_use]
    pub fn with_max_wall_clock(mut self, max_wall_clock: Duration) -> Self {
        self.max_wall_clock = max_wall_clock;
        self
    }

    /// Sets the maximum number of tokens, input and output together, as the provider counts them;
    /// `None` is no limit, the default.
    #[must_use]
    pub fn with_max_tokens(mut self, max_tokens: impl Into<Option<u64>>) -> Self {
        self.max_tokens = max_tokens.into();
        self
    }

    /// Sets the maximum cost, out-of-band calls included; `None` is no limit, the default.
    ///
    /// ```
    /// use rockbot_core::chat::MicroUsd;
    /// use rockbot_core::turn::Budget;
    ///
    /// let budget = Budget::default().with_max_cost(MicroUsd::from_dollars(0.25)?);
    /// # assert_eq!(budget.max_cost, Some(MicroUsd(250_000)));
    /// # Ok::<(), rockbot_core::chat::InvalidAmount>(())
    /// ```
    #[must_use]
    pub fn with_max_cost(mut self, max_cost: impl Into<Option<MicroUsd>>) -> Self {
        self.max_cost = max_cost.into();
        self
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
    /// [`Budget::max_cost`], which cannot be kept: the price of an answer is unknown. The model is
    /// not asked again.
    UnknownPrice,
    /// The host's patience with a model that makes the same calls again and again, with the same
    /// results.
    Repetition,
    /// The maximum length of an answer, of the provider or of a setting: the answer was cut.
    AnswerLength,
    /// The content filter of the provider, which cut the answer.
    ContentFilter,
}

impl fmt::Display for BudgetLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ModelCalls => "number of model calls",
            Self::ToolCalls => "number of tool calls",
            Self::WallClock => "time",
            Self::Tokens => "number of tokens",
            Self::Cost => "money",
            Self::UnknownPrice => "money that can be counted",
            Self::Repetition => "patience with repeated calls",
            Self::AnswerLength => "length of an answer",
            Self::ContentFilter => "patience of the provider's content filter",
        })
    }
}
