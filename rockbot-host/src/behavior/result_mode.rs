//! How the results of scheduled tasks are told.

use rockbot_core::config::{FromSetting, Value};

/// How the answer of a turn that a schedule began tells what its tools returned. The model is told so; what it then
/// answers is an answer as any other, which is filtered and not taken for anything but the model's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ScheduledTaskResultMode {
    /// In the model's words, as in any other turn.
    #[default]
    Summarize,
    /// Word for word, and nothing else: for models whose summaries leave out what matters.
    VerbatimOutput,
    /// In the model's words, and then word for word.
    SummarizeWithOutput,
}

impl ScheduledTaskResultMode {
    /// What the model is told before the message.
    pub(crate) fn instruction(self) -> Option<&'static str> {
        match self {
            Self::Summarize => None,
            Self::VerbatimOutput => Some(
                "The last message is a scheduled task. Answer it with what your tools return, word for word and complete: \
                 no summary, and nothing before or after it.",
            ),
            Self::SummarizeWithOutput => Some(
                "The last message is a scheduled task. Answer it with a summary, a blank line, and then what your tools \
                 return, word for word and complete.",
            ),
        }
    }
}

/// Whatever the case.
impl FromSetting for ScheduledTaskResultMode {
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
