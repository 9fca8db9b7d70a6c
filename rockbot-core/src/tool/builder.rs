//! A tool: its registration and its executor, and the setters that describe it.

use std::sync::Arc;
use std::time::Duration;

use super::{Effect, ToolExecutor, ToolRegistration};

/// A tool that is ready to be added to a host or a registry.
#[derive(Debug, Clone)]
pub struct Tool {
    /// What it says about itself.
    pub registration: ToolRegistration,
    /// What runs its calls.
    pub executor: Arc<dyn ToolExecutor>,
}

impl Tool {
    /// A tool whose calls `executor` runs.
    pub fn new(registration: ToolRegistration, executor: impl ToolExecutor) -> Self {
        Self {
            registration,
            executor: Arc::new(executor),
        }
    }

    /// With this description instead of the doc comment on the arguments.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.registration.description = description.into();
        self
    }

    /// From this source instead of `local`.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.registration.source = source.into();
        self
    }

    /// Only reads: [`Effect::Pure`].
    #[must_use]
    pub fn pure(self) -> Self {
        self.effect(Effect::Pure)
    }

    /// May run again without harm: [`Effect::Idempotent`].
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.effect(Effect::Idempotent)
    }

    /// With this effect.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.registration.effect = effect;
        self
    }

    /// Each call must be approved first.
    #[must_use]
    pub fn needs_approval(mut self) -> Self {
        self.registration.hints.needs_approval = true;
        self
    }

    /// A call may take this long.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.registration.hints.time_limit = Some(limit);
        self
    }

    /// At most this many calls run at once.
    #[must_use]
    pub fn max_concurrency(mut self, calls: u32) -> Self {
        self.registration.hints.max_concurrency = Some(calls);
        self
    }

    /// Its results stay in the conversation as they are: it reads what was taken out of it, or returns long texts in
    /// parts itself.
    #[must_use]
    pub fn keeps_results_whole(mut self) -> Self {
        self.registration.hints.keeps_results_whole = true;
        self
    }

    /// Marks the tool as one that delegates: a call hands its work to another agent, which reports the result later.
    ///
    /// Before a turn ends, the host may judge whether its calls have done what the user asked for. The calls of a turn that
    /// delegates cannot show that yet, so the host does not judge such a turn.
    ///
    /// ```
    /// use rockbot_core::tool::tool;
    ///
    /// /// Starts a subagent, which reports its result in a later message.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Spawn { task: String }
    ///
    /// let spawn = tool("spawn_subagent", |Spawn { task }: Spawn| async move { format!("started: {task}") }).delegates();
    /// assert!(spawn.registration.hints.delegates);
    /// ```
    #[must_use]
    pub fn delegates(mut self) -> Self {
        self.registration.hints.delegates = true;
        self
    }
}
