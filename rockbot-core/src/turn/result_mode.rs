//! The form of tool results in an answer.

use serde::{Deserialize, Serialize};

#[cfg(feature = "config")]
use crate::config::{FromSetting, Value};

/// The form of tool results in the answer of a turn, such as a scheduled turn.
///
/// It is an instruction to the model. The answer is filtered as any other, and counts as the
/// model's words even when it repeats a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ResultMode {
    /// A summary in the model's words, as in any other turn.
    #[default]
    Summarize,
    /// The results verbatim and nothing else, for models whose summaries leave out important parts.
    VerbatimOutput,
    /// A summary, followed by the results verbatim.
    SummarizeWithOutput,
}

impl ResultMode {
    /// Returns the instruction to the model before the message; `None` when it needs none.
    pub fn instruction(self) -> Option<&'static str> {
        match self {
            Self::Summarize => None,
            Self::VerbatimOutput => Some(
                "The last message is a task. Answer it with what your tools return, word for word and complete: \
                 no summary, and nothing before or after it.",
            ),
            Self::SummarizeWithOutput => Some(
                "The last message is a task. Answer it with a summary, a blank line, and then what your tools \
                 return, word for word and complete.",
            ),
        }
    }
}

/// Parses the name of a mode without regard to case.
#[cfg(feature = "config")]
impl FromSetting for ResultMode {
    const EXPECTED: &'static str = "`Summarize`, `VerbatimOutput` or `SummarizeWithOutput`";

    fn from_value(value: &Value) -> Option<Self> {
        match &*value.as_text()?.to_ascii_lowercase() {
            "summarize" => Some(Self::Summarize),
            "verbatimoutput" => Some(Self::VerbatimOutput),
            "summarizewithoutput" => Some(Self::SummarizeWithOutput),
            _ => None,
        }
    }
}
