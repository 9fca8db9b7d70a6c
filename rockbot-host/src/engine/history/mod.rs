//! The conversation before a turn: what is kept of it, and what the model is shown.

mod calls;
mod messages;
mod window;

pub(crate) use calls::bounded;
pub(super) use calls::rounds_of;
pub(super) use messages::{ShownHistory, given, shown};
pub(super) use window::{ENTRIES, HistoryWindow};

/// The part that tool calls have in conversations, for [`AgentHostBuilder::history`](crate::AgentHostBuilder::history).
///
/// By default a conversation keeps the calls of each turn with their results, shortened, and the model is not shown them.
/// With [`with_shown_calls`](HistoryOptions::with_shown_calls) it sees them in later turns, and can answer a follow-up
/// without a second call; a result that the model sees counts as read, so a later turn of the conversation is as
/// untrusted as the turn that made the call.
///
/// ```
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_host::{AgentHost, HistoryOptions};
///
/// let host = AgentHost::in_memory()
///     .chat(ScriptedModel::new())
///     .history(HistoryOptions::new().with_shown_calls(true))
///     .build()?;
/// # Ok::<_, rockbot_host::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryOptions {
    /// `true` if conversations keep calls and results. Default `true`.
    pub keep_calls: bool,
    /// `true` if the model sees the calls and results of earlier turns that the conversation kept. Default `false`.
    pub show_calls: bool,
}

impl HistoryOptions {
    /// Creates the default options.
    pub fn new() -> Self {
        Self {
            keep_calls: true,
            show_calls: false,
        }
    }

    /// Sets whether conversations keep calls and results. Default `true`.
    ///
    /// Of each turn the last 16 calls are kept at most, and 8 KiB of them: 2 000 bytes of a result, from its beginning
    /// and its end, and 1 000 bytes of arguments.
    #[must_use]
    pub fn with_kept_calls(mut self, keeps: bool) -> Self {
        self.keep_calls = keeps;
        self
    }

    /// Sets whether the model sees the calls and results of earlier turns. Default `false`: shown results of other programs
    /// count as untrusted text of the turn, and whether they pay has not been measured.
    #[must_use]
    pub fn with_shown_calls(mut self, shows: bool) -> Self {
        self.show_calls = shows;
        self
    }
}

impl Default for HistoryOptions {
    fn default() -> Self {
        Self::new()
    }
}
