//! The tool that keeps the model's answers to a wisp's interpreter in the wisp's conversation, so
//! that a resume reads them.

use rockbot_core::chat::ToolCall;
use rockbot_core::tool::{Tool, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Name of the tool.
pub(super) const KEEP: &str = "keep_wisp_step";

/// The note about the rest of a text that was cut.
pub(super) const CUT: &str = "further bytes are left out";

/// Maximum length of an output that is kept, in bytes.
const MAX_KEPT: usize = 64 << 10;

/// Keeps the outcome of a step. Only wisps call it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kept {
    /// The answer of a model.
    Output {
        /// The position of the step.
        step: usize,
        /// The answer.
        text: String,
    },
    /// The reason why a step failed.
    Failed {
        /// The position of the step.
        step: usize,
        /// The reason.
        text: String,
    },
    /// Corrected arguments of a call that has not run.
    Params {
        /// The position of the step.
        step: usize,
        /// The arguments.
        params: Map<String, Value>,
    },
}

/// A thing to keep, as the arguments of the tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Keep {
    kept: Kept,
}

impl Kept {
    /// Returns the call that keeps the outcome.
    pub(super) fn call(self) -> ToolCall {
        let (kind, step) = match &self {
            Self::Output { step, .. } => ("output", step),
            Self::Failed { step, .. } => ("failed", step),
            Self::Params { step, .. } => ("params", step),
        };
        let id = format!("wisp-{kind}-{step}");
        let arguments = serde_json::to_string(&Keep { kept: self }).unwrap_or_default();
        ToolCall::new(id, KEEP, arguments)
    }

    /// Returns the outcome that a call kept.
    pub(super) fn of(call: &ToolCall) -> Option<Self> {
        let keep: Keep = serde_json::from_str(&call.arguments).ok()?;
        Some(keep.kept)
    }

    /// Creates the record of an answer. A long answer is cut.
    pub(super) fn output(step: usize, text: &str) -> Self {
        Self::Output {
            step,
            text: cut(text, MAX_KEPT),
        }
    }

    /// Creates the record of a failure.
    pub(super) fn failed(step: usize, text: &str) -> Self {
        Self::Failed {
            step,
            text: cut(text, MAX_KEPT),
        }
    }
}

/// Returns at most about `max` bytes of a text, with a note about the rest.
pub(super) fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let kept = &text[..text.floor_char_boundary(max)];
    format!("{kept}\n[{} {CUT}]", text.len() - kept.len())
}

/// Creates the tool.
pub(super) fn keep_tool() -> Tool {
    tool(KEEP, |_: Keep| async move { "kept" }).pure().own_output()
}
