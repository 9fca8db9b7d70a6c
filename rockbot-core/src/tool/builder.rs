//! A tool, with the setters that describe it.

use std::sync::Arc;
use std::time::Duration;

use super::endorsement::{EndorsedWhen, Orders};
use super::{ArgumentRole, Effect, ToolExecutor, ToolExposure, ToolGroup, ToolInvokeRequest, ToolRegistration};
use crate::{CallContext, ToolName};

/// A tool that is ready to be added to a host or a registry.
///
/// [`tool`](super::tool) and [`stateful_tool`](super::stateful_tool) create one from a closure.
/// The setters consume and return the tool, in any order:
///
/// ```
/// use std::time::Duration;
/// use rockbot_core::tool::{Effect, tool};
///
/// /// Sends a mail.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Mail { to: String, text: String }
///
/// let send = tool("send_mail", |Mail { to, .. }: Mail| async move { format!("sent to {to}") })
///     .needs_approval()
///     .time_limit(Duration::from_secs(20));
/// assert_eq!(send.registration.effect, Effect::Mutating, "unless the tool says otherwise");
/// assert!(send.registration.hints.needs_approval);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Tool {
    /// The description of the tool, for the model and the host.
    pub registration: ToolRegistration,
    /// The executor of the calls.
    pub executor: Arc<dyn ToolExecutor>,
}

impl Tool {
    /// Creates a tool whose calls `executor` runs. Use it for an executor of your own; closures need
    /// [`tool`](super::tool) only.
    pub fn new(registration: ToolRegistration, executor: impl ToolExecutor) -> Self {
        Self {
            registration,
            executor: Arc::new(executor),
        }
    }

    /// Sets the description that the model reads, instead of the doc comment on the arguments.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.registration.description = description.into();
        self
    }

    /// Sets the origin of the tool, such as `mcp:weather-server`. Default `local`.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.registration.source = source.into();
        self
    }

    /// Sets the effect to [`Effect::Pure`]: calls only read, so they run concurrently and may be
    /// repeated.
    #[must_use]
    pub fn pure(self) -> Self {
        self.effect(Effect::Pure)
    }

    /// Sets the effect to [`Effect::Idempotent`]: repeating a call changes nothing more.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.effect(Effect::Idempotent)
    }

    /// Sets the effect. Default [`Effect::Mutating`].
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.registration.effect = effect;
        self
    }

    /// Requires an approval for each call. The turn waits for a person's decision before the call runs.
    #[must_use]
    pub fn needs_approval(mut self) -> Self {
        self.registration.hints.needs_approval = true;
        self
    }

    /// Requires an approval for each call of a model that has read untrusted text. Set it for a tool
    /// whose effect a page or a mail must not bring about, such as sending something; other calls run
    /// at once.
    ///
    /// ```
    /// # use rockbot_core::tool::tool;
    /// /// Sends a mail.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Mail { to: String, text: String }
    ///
    /// let send = tool("send_mail", |Mail { to, .. }: Mail| async move { format!("sent to {to}") }).needs_endorsement();
    /// assert!(send.registration.hints.needs_endorsement);
    /// ```
    #[must_use]
    pub fn needs_endorsement(mut self) -> Self {
        self.registration.hints.needs_endorsement = true;
        self
    }

    /// Declares that `argument` decides where a call goes or what it changes: a recipient, an
    /// account, a path. After its model has read untrusted text, the call runs without a question
    /// only if the value is the user's own. Schema and name tell for arguments that are not
    /// declared; composed text, such as a `body`, decides nothing.
    ///
    /// ```
    /// # use rockbot_core::tool::tool;
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Move { title: String, text: String }
    /// let publish = tool("publish", async |page: Move| page.text).destination("title").content("text");
    /// assert_eq!(publish.registration.hints.argument_roles.len(), 2);
    /// ```
    #[must_use]
    pub fn destination(mut self, argument: impl Into<String>) -> Self {
        let role = (argument.into(), ArgumentRole::Destination);
        self.registration.hints.argument_roles.push(role);
        self
    }

    /// Declares that `argument` is text that the model composes, which decides nothing. See
    /// [`destination`](Self::destination).
    #[must_use]
    pub fn content(mut self, argument: impl Into<String>) -> Self {
        let role = (argument.into(), ArgumentRole::Content);
        self.registration.hints.argument_roles.push(role);
        self
    }

    /// Lets calls run without an endorsement, whatever their model has read. Give the `reason`: a
    /// page or a mail can then bring about every call of the tool. Operators see the reason.
    ///
    /// ```
    /// # use rockbot_core::tool::tool;
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Step { metres: u32 }
    /// let step = tool("step", async |step: Step| step.metres).trusted_effect("a toy on a table");
    /// assert_eq!(step.registration.hints.trusted_effect.as_deref(), Some("a toy on a table"));
    /// ```
    #[must_use]
    pub fn trusted_effect(mut self, reason: impl Into<Arc<str>>) -> Self {
        self.registration.hints.trusted_effect = Some(reason.into());
        self
    }

    /// Sets which calls of a model that has read untrusted text need an approval: the calls that
    /// `check` returns `true` for. The host asks when the model makes the call, and again before it
    /// runs.
    #[must_use]
    pub fn endorsed_when<F, Checking>(mut self, check: F) -> Self
    where
        F: Fn(ToolInvokeRequest, CallContext) -> Checking + Send + Sync + 'static,
        Checking: Future<Output = bool> + Send + 'static,
    {
        self.registration.hints.needs_endorsement = true;
        self.executor = EndorsedWhen::around(self.executor, check);
        self
    }

    /// Sets the orders of a user that endorse a call in words: a message endorses a call if it is
    /// nothing but a word of `words`, a colon and a text, and the call has this text as its only
    /// `argument`. The words are given in lower case; the message may have them in any case.
    /// Default: none, so each call that needs an endorsement is asked about.
    ///
    /// ```
    /// # use rockbot_core::tool::tool;
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Note { text: String }
    /// let pin = tool("pin", async |note: Note| note.text)
    ///     .needs_endorsement()
    ///     .endorsed_by("text", &["pin", "pin this"]);
    /// # let _ = pin;
    /// ```
    #[must_use]
    pub fn endorsed_by(mut self, argument: &'static str, words: &'static [&'static str]) -> Self {
        self.registration.hints.orders = Some(Orders { argument, words });
        self
    }

    /// Declares the output as the tool's own: it holds nothing but the program's own knowledge,
    /// such as the time, so a model that has read it goes on being trusted. A tool that shows text
    /// of others states its provenance part by part.
    ///
    /// ```
    /// # use rockbot_core::tool::tool;
    /// /// Adds two numbers.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Sum { a: i64, b: i64 }
    ///
    /// let sum = tool("sum", |Sum { a, b }: Sum| async move { a + b }).pure().own_output();
    /// assert!(sum.registration.hints.own_output);
    /// ```
    #[must_use]
    pub fn own_output(mut self) -> Self {
        self.registration.hints.own_output = true;
        self
    }

    /// Declares that calls change nothing outside of the agent, so that they run although the
    /// message of their turn [only informs](crate::turn::TurnRequest::with_informing).
    #[must_use]
    pub fn internal(mut self) -> Self {
        self.registration.hints.internal = true;
        self
    }

    /// Sets the maximum duration of a call, instead of the host's limit. The host cancels a call that
    /// takes longer; the error that the model reads depends on the effect (see
    /// [`ToolError::too_long`](super::ToolError::too_long)).
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.registration.hints.time_limit = Some(limit);
        self
    }

    /// Sets the maximum number of calls that run concurrently in one host. Further calls wait. Zero
    /// is an error of the registration.
    #[must_use]
    pub fn max_concurrency(mut self, calls: u32) -> Self {
        self.registration.hints.max_concurrency = Some(calls);
        self
    }

    /// Keeps results in the conversation as they are, however long. Set it for a tool that reads
    /// offloaded results, or that returns long texts in parts itself.
    #[must_use]
    pub fn keeps_results_whole(mut self) -> Self {
        self.registration.hints.keeps_results_whole = true;
        self
    }

    /// Marks the tool as delegating: a call hands its work to another agent, which reports the
    /// result later.
    ///
    /// Before a turn ends, the host may judge whether its calls have fulfilled the user's request.
    /// The calls of a turn that delegates cannot show that yet, so the host does not judge such a
    /// turn.
    ///
    /// ```
    /// use rockbot_core::tool::tool;
    ///
    /// /// Starts a subagent, which reports its result in a later message.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Spawn { task: String }
    ///
    /// let spawn = tool("spawn_subagent", |Spawn { task }: Spawn| async move { format!("started: {task}") });
    /// let spawn = spawn.delegates();
    /// assert!(spawn.registration.hints.delegates);
    /// ```
    #[must_use]
    pub fn delegates(mut self) -> Self {
        self.registration.hints.delegates = true;
        self
    }

    /// Shows the tool only in conversations whose model has activated `group`. Default: in every
    /// request. See [`ToolExposure`].
    #[must_use]
    pub fn on_demand(mut self, group: &ToolGroup) -> Self {
        self.registration.hints.exposure = ToolExposure::OnDemand(group.clone());
        self
    }

    /// Shows the tool only where something that needs it has activated the group of this name in
    /// the conversation, such as a call of a tool that [activates](Self::activates) it.
    #[must_use]
    pub fn when_needed(mut self, group: impl Into<ToolName>) -> Self {
        self.registration.hints.exposure = ToolExposure::WhenNeeded(group.into());
        self
    }

    /// Activates a group of tools with each successful call: its results name something that these
    /// tools are needed for. Call it once for each group.
    #[must_use]
    pub fn activates(mut self, group: impl Into<ToolName>) -> Self {
        self.registration.hints.activates.push(group.into());
        self
    }

    /// Marks the tool as the reader of the host's [`ToolGuides`](super::ToolGuides) to the model.
    /// The host then adds no tools of its own for that.
    #[must_use]
    pub fn reads_guides(mut self) -> Self {
        self.registration.hints.reads_guides = true;
        self
    }
}
