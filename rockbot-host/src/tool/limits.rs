//! The limits of tool calls.
//!
//! Results have no maximum length by default: 8 000 characters would leave nothing for the chunks
//! of 64 000.

use std::time::Duration;

/// The limits of tool calls in one host.
///
/// A time limit ends a call at its next `await`. While a tool blocks its thread, no limit can: on
/// a runtime of one thread the whole host waits for it. Move such work to
/// [`spawn_blocking`](tokio::task::spawn_blocking).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolLimits {
    /// Maximum duration of a call whose tool states none of its own. Time spent waiting for a permit
    /// does not count. Default 60 seconds.
    pub time_limit: Duration,
    /// Maximum number of calls that run at once; further calls wait for a permit. Default 64.
    pub max_concurrency: usize,
    /// Maximum length of a result in bytes. A longer result is truncated and begins with a note about
    /// it. Default 10 MiB.
    pub max_result_bytes: usize,
    /// Time that a call may block its thread. A longer blocking is logged as a warning with the
    /// tool's name, once it ends, and counted as `rockbot.tool.blocked`; it is not stopped. Default
    /// 1 second.
    pub max_blocking: Duration,
    /// `true` if every call with an effect needs an endorsement once its model has read text of
    /// others, and so does a call that sends what the model composed to an address; tools opt out by
    /// [`trusted_effect`](rockbot_core::tool::Tool::trusted_effect). Default `true`. Without it, calls of
    /// tools that declare [`needs_endorsement`](rockbot_core::tool::Tool::needs_endorsement) alone
    /// need an endorsement.
    pub guards_effects: bool,
    /// `true` if models have the tool `plan_effects`: a call that a model plans before it reads text of
    /// others, with the values of the user's message, needs no endorsement later. Default `false`.
    pub plans_effects: bool,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self {
            time_limit: Duration::from_secs(60),
            max_concurrency: 64,
            max_result_bytes: 10 << 20,
            max_blocking: Duration::from_secs(1),
            guards_effects: true,
            plans_effects: false,
        }
    }
}

impl ToolLimits {
    /// Sets the maximum duration of a call whose tool states none of its own. Default 60 seconds.
    #[must_use]
    pub fn with_time_limit(mut self, time_limit: Duration) -> Self {
        self.time_limit = time_limit;
        self
    }

    /// Sets the maximum number of calls that run at once; further calls wait for a permit. Default 64.
    #[must_use]
    pub fn with_max_concurrency(mut self, max_concurrency: usize) -> Self {
        self.max_concurrency = max_concurrency;
        self
    }

    /// Sets the maximum length of a result in bytes. Default 10 MiB.
    #[must_use]
    pub fn with_max_result_bytes(mut self, max_result_bytes: usize) -> Self {
        self.max_result_bytes = max_result_bytes;
        self
    }

    /// Sets the time that a call may block its thread before a warning is logged. Default 1 second.
    #[must_use]
    pub fn with_max_blocking(mut self, max_blocking: Duration) -> Self {
        self.max_blocking = max_blocking;
        self
    }

    /// Sets whether every call with an effect needs an endorsement once its model has read text of
    /// others. Default `true`.
    #[must_use]
    pub fn with_guards_effects(mut self, guards_effects: bool) -> Self {
        self.guards_effects = guards_effects;
        self
    }

    /// Sets whether models have the tool `plan_effects`. Default `false`.
    #[must_use]
    pub fn with_plans_effects(mut self, plans_effects: bool) -> Self {
        self.plans_effects = plans_effects;
        self
    }
}
