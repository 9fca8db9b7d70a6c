//! The conversation before a turn: the entries that are kept of it, and the messages that the
//! model is shown.
//!
//! The answer of a turn keeps the turn's calls and results (`engine/history/calls.rs`: the last
//! 16, 2 000 bytes of a result, 8 KiB a turn). With `HistoryOptions::show_calls`, which is off by
//! default, later requests show them as calls and results, under ids that follow from the turn;
//! without it, only calls from text, as long as the last call of the conversation is from text. A
//! request shows at most 20 entries, and begins where the request before it began, until there
//! would be more; then it is cut to three quarters. Each answer keeps the label of its sources,
//! see the section on trust in `ARCHITECTURE.md`.

use std::time::Duration;

mod calls;
mod messages;
mod window;

pub(crate) use calls::bounded;
pub(super) use calls::rounds_of;
pub(super) use messages::{ShownHistory, given, shown};
pub(super) use window::{HistoryWindow, after_pause};

/// The part of a conversation that the model is shown and that tool calls have in it, for
/// [`AgentHostBuilder::history`](crate::AgentHostBuilder::history).
///
/// By default a conversation keeps the calls of each turn with their results, shortened, and the
/// model is not shown them, unless it writes its calls as text: such a model goes by its own
/// example. With [`with_shown_calls`](HistoryOptions::with_shown_calls) it sees
/// them in later turns, and can answer a follow-up without a second call; text that was made of
/// outside text stays labelled either way: a later turn of the conversation is as untrusted as
/// the entries that it shows.
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
    /// `true` if the model sees the calls and results of earlier turns that the conversation kept.
    /// Default `false`: only while it writes its calls as text.
    pub show_calls: bool,
    /// Maximum number of earlier entries that the model is shown; a question and its answer are two.
    /// Default 20, at least 4.
    pub max_entries: usize,
    /// Time after its last turn until a session begins afresh: the model is shown nothing from
    /// before. `None` never forgets. Default `None`.
    pub idle_timeout: Option<Duration>,
}

impl HistoryOptions {
    /// Creates the default options.
    pub fn new() -> Self {
        Self {
            keep_calls: true,
            show_calls: false,
            max_entries: 20,
            idle_timeout: None,
        }
    }

    /// Sets whether conversations keep calls and results. Default `true`.
    ///
    /// For each turn, at most the last 16 calls are kept, and 8 KiB of them: 2 000 bytes of a
    /// result, from its beginning and its end, and 1 000 bytes of arguments.
    #[must_use]
    pub fn with_kept_calls(mut self, keeps: bool) -> Self {
        self.keep_calls = keeps;
        self
    }

    /// Sets whether the model sees all calls and results of earlier turns. Default `false`: only
    /// while it writes its calls as text, since nothing else was measured to pay. Shown results of
    /// other programs count as untrusted text of the turn.
    #[must_use]
    pub fn with_shown_calls(mut self, shows: bool) -> Self {
        self.show_calls = shows;
        self
    }

    /// Sets the maximum number of earlier entries that the model is shown; a question and its
    /// answer are two. Default 20, at least 4. A conversation above it is cut to three quarters of
    /// it, so that the provider's cache of the prompt stays valid for some turns. It cannot exceed
    /// the number of entries that conversation memory keeps: 50.
    #[must_use]
    pub fn with_max_entries(mut self, max_entries: usize) -> Self {
        self.max_entries = max_entries.max(4);
        self
    }

    /// Sets the time after its last turn until a session begins afresh. Default: never.
    ///
    /// The model is then shown nothing from before the pause. Nothing is deleted: the conversation
    /// keeps its entries, and [`Agent::history`](crate::Agent::history) returns them.
    #[must_use]
    pub fn with_idle_timeout(mut self, idle_timeout: impl Into<Option<Duration>>) -> Self {
        self.idle_timeout = idle_timeout.into();
        self
    }
}

impl Default for HistoryOptions {
    fn default() -> Self {
        Self::new()
    }
}
