//! The context that travels with every call: for whom, from where, until when, with which permissions.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{CallId, Digest, Principal, SessionId, TurnId};

/// Through which door work came in. It comes from the channel, never from the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Origin {
    /// A person, or a program that embeds the agent.
    #[default]
    User,
    /// A schedule that fired.
    Scheduled,
    /// Another turn of this host.
    Subagent,
    /// A message bus.
    Bus,
}

/// Whose work goes first where work has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Priority {
    /// Somebody waits for the answer.
    #[default]
    User,
    /// A schedule fired.
    Scheduled,
    /// Another turn waits for the answer.
    Subagent,
    /// Nobody waits: the agent tends its own memory.
    Dream,
}

/// How far a text can be trusted. Ordered: the trust of a mixture is the least of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Anybody may have written it: tool output, web pages, remote agents.
    #[default]
    Untrusted,
    /// The person in the conversation wrote it.
    User,
    /// The operator of this host wrote it: profile, rules, the framework's own texts.
    Host,
}

/// Where the untrusted text came from that the model of a turn had read when it made a call, such as `tool:web_browse`; its
/// own words are not among them, those of earlier turns neither. The host attaches it to the contexts of calls that change
/// something: what such a call writes down may repeat what a stranger said. It names what
/// [`CallContext::content_trust`] judges, which counts earlier answers, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UntrustedSources(pub Arc<[Arc<str>]>);

/// Permission for one exact tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The call that was approved.
    pub call: CallId,
    /// [`Grant::args_hash`] of the call that was approved: other arguments are another call.
    pub args_hash: Digest,
}

impl Grant {
    /// The digest that binds a grant to a tool and its exact arguments.
    pub fn args_hash(tool: &str, arguments: &str) -> Digest {
        Digest::of([tool, arguments])
    }
}

/// Reports the progress of a tool call to the listener of its turn.
///
/// It is the narrow side of a turn's [`ProgressSink`](crate::turn::ProgressSink): a tool can report texts of its own, but
/// no event of the turn, such as its end. Without a listener a report costs nothing. Cheap to clone.
///
/// ```
/// use rockbot_core::CallContext;
///
/// async fn index(files: &[&str], cx: &CallContext) {
///     for (done, file) in files.iter().enumerate() {
///         cx.progress().report(format!("{file} ({done} of {} done)", files.len()));
///     }
/// }
/// ```
#[derive(Clone, Default)]
pub struct ProgressReporter(Option<Arc<dyn ProgressListener>>);

/// A receiver of the texts that tools report while they run.
pub trait ProgressListener: Send + Sync + 'static {
    /// Receives one report. It is called from within the tool call and must not block.
    fn tool_progress(&self, text: String);
}

impl ProgressReporter {
    /// Creates a reporter that passes its texts to `listener`.
    pub fn new(listener: Arc<dyn ProgressListener>) -> Self {
        Self(Some(listener))
    }

    /// Creates a reporter without a listener, which drops all reports.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns `true` if there is a listener. A tool can skip reports that are expensive to compute otherwise.
    pub fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Reports how far the tool is, in a short text for the user.
    pub fn report(&self, text: impl Into<String>) {
        if let Some(listener) = &self.0 {
            listener.tool_progress(text.into());
        }
    }
}

impl fmt::Debug for ProgressReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProgressReporter").field(&self.is_open()).finish()
    }
}

/// What every call knows about the work that it belongs to: one shared allocation, cheap to clone.
///
/// A context is passed along unchanged. Of its fields these cross a bus: principal, remaining time, trace and
/// idempotency key. Trust and grants never do: they come from the channel.
///
/// ```
/// # use rockbot_core::context::{CallContext, Origin};
/// let cx = CallContext::new("session-1").with_origin(Origin::Scheduled);
/// assert_eq!(cx.session().as_str(), "session-1");
/// assert!(cx.time_left().is_none());
/// ```
#[derive(Clone, Debug)]
pub struct CallContext(Arc<Scope>);

#[derive(Clone, Debug)]
struct Scope {
    session: SessionId,
    principal: Principal,
    turn: Option<TurnId>,
    parent: Option<TurnId>,
    depth: u32,
    origin: Origin,
    priority: Priority,
    trust: Trust,
    /// Of what the model had read; see [`CallContext::content_trust`].
    content: Trust,
    deadline: Option<Instant>,
    cancellation: CancellationToken,
    grants: Arc<[Grant]>,
    /// The key of a call that came from another program, as its caller named it.
    idempotency_key: Option<Arc<str>>,
    trace: Option<Arc<str>>,
    progress: ProgressReporter,
    extensions: BTreeMap<TypeId, Extension>,
}

#[derive(Clone)]
struct Extension(Arc<dyn Any + Send + Sync>);

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Extension")
    }
}

impl CallContext {
    /// The context of a user's call in `session`: local principal, no deadline, no grants, nobody listening.
    pub fn new(session: impl Into<SessionId>) -> Self {
        Self(Arc::new(Scope {
            session: session.into(),
            principal: Principal::default(),
            turn: None,
            parent: None,
            depth: 0,
            origin: Origin::User,
            priority: Priority::User,
            trust: Trust::User,
            content: Trust::Host,
            deadline: None,
            cancellation: CancellationToken::new(),
            grants: Arc::from([]),
            idempotency_key: None,
            trace: None,
            progress: ProgressReporter::none(),
            extensions: BTreeMap::new(),
        }))
    }

    /// The conversation.
    pub fn session(&self) -> &SessionId {
        &self.0.session
    }

    /// On whose behalf.
    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// The turn that this call belongs to, if any.
    pub fn turn(&self) -> Option<&TurnId> {
        self.0.turn.as_ref()
    }

    /// The turn that started this call's turn, if any.
    pub fn parent(&self) -> Option<&TurnId> {
        self.0.parent.as_ref()
    }

    /// How many turns stand above this call's turn: 0 for a turn that a message started.
    pub fn depth(&self) -> u32 {
        self.0.depth
    }

    /// Through which door the work came in.
    pub fn origin(&self) -> Origin {
        self.0.origin
    }

    /// Whose work goes first.
    pub fn priority(&self) -> Priority {
        self.0.priority
    }

    /// How far the originator of the work can be trusted.
    pub fn trust(&self) -> Trust {
        self.0.trust
    }

    /// How far everything can be trusted that led to this call: its originator, and what the model had read when it made
    /// the call. [`Trust::Untrusted`] once that was a tool's result, an earlier answer of the model, which may repeat one,
    /// or something in another program, of which nobody knows.
    ///
    /// A tool layer decides by it: a tool that sends mail can be denied once strangers may have spoken. Whoever starts
    /// work from within a tool call passes it on as the trust of that work.
    pub fn content_trust(&self) -> Trust {
        self.0.trust.min(self.0.content)
    }

    /// When the work must have ended, if ever.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.deadline
    }

    /// How long the work may still take: `None` when it has no deadline.
    pub fn time_left(&self) -> Option<Duration> {
        let deadline = self.0.deadline?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    /// Fires when the work is no longer wanted.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.cancellation
    }

    /// The W3C `traceparent` of the caller, if there is one.
    pub fn trace(&self) -> Option<&str> {
        self.0.trace.as_deref()
    }

    /// Returns the reporter through which a tool tells the listener of its turn how far it is.
    pub fn progress(&self) -> &ProgressReporter {
        &self.0.progress
    }

    /// Whether this exact call was approved.
    pub fn is_granted(&self, call: &CallId, tool: &str, arguments: &str) -> bool {
        let matches = |grant: &Grant| grant.call == *call && grant.args_hash == Grant::args_hash(tool, arguments);
        self.0.grants.iter().any(matches)
    }

    /// The key under which an outside system can recognise a repetition of `call`: turn and call id, or what the
    /// program that asked for the call says.
    pub fn idempotency_key(&self, call: &CallId) -> String {
        match (&self.0.turn, &self.0.idempotency_key) {
            (Some(turn), _) => format!("{turn}/{call}"),
            (None, Some(key)) => key.to_string(),
            (None, None) => format!("{}/{call}", self.0.session),
        }
    }

    /// The value of type `T` that somebody attached with [`CallContext::with_extension`].
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.extensions.get(&TypeId::of::<T>())?.0.downcast_ref()
    }

    /// On behalf of `principal`.
    #[must_use]
    pub fn with_principal(self, principal: Principal) -> Self {
        self.change(|scope| scope.principal = principal)
    }

    /// As the one call that another program asks for under `key`.
    #[must_use]
    pub fn with_idempotency_key(self, key: impl Into<Arc<str>>) -> Self {
        self.change(|scope| scope.idempotency_key = Some(key.into()))
    }

    /// As a call of `turn`.
    #[must_use]
    pub fn with_turn(self, turn: TurnId) -> Self {
        self.change(|scope| scope.turn = Some(turn))
    }

    /// As work that `parent` started, one level below it.
    #[must_use]
    pub fn with_parent(self, parent: TurnId, depth: u32) -> Self {
        self.change(|scope| {
            scope.parent = Some(parent);
            scope.depth = depth;
        })
    }

    /// Through `door`.
    #[must_use]
    pub fn with_origin(self, origin: Origin) -> Self {
        self.change(|scope| scope.origin = origin)
    }

    /// With `priority`.
    #[must_use]
    pub fn with_priority(self, priority: Priority) -> Self {
        self.change(|scope| scope.priority = priority)
    }

    /// With `trust` in the originator.
    #[must_use]
    pub fn with_trust(self, trust: Trust) -> Self {
        self.change(|scope| scope.trust = trust)
    }

    /// After the model has read something of this trust. It only ever gets less.
    #[must_use]
    pub fn with_content_trust(self, content: Trust) -> Self {
        self.change(|scope| scope.content = scope.content.min(content))
    }

    /// To be finished by `deadline`.
    #[must_use]
    pub fn with_deadline(self, deadline: Instant) -> Self {
        self.change(|scope| scope.deadline = Some(deadline))
    }

    /// Cancelled by `cancellation`.
    #[must_use]
    pub fn with_cancellation(self, cancellation: CancellationToken) -> Self {
        self.change(|scope| scope.cancellation = cancellation)
    }

    /// With exactly these grants.
    #[must_use]
    pub fn with_grants(self, grants: impl Into<Arc<[Grant]>>) -> Self {
        self.change(|scope| scope.grants = grants.into())
    }

    /// As part of the trace `traceparent`.
    #[must_use]
    pub fn with_trace(self, traceparent: &str) -> Self {
        self.change(|scope| scope.trace = Some(traceparent.into()))
    }

    /// Sets the listener that [`CallContext::progress`] reports to, such as the
    /// [`ProgressSink`](crate::turn::ProgressSink) of a turn.
    #[must_use]
    pub fn with_progress(self, progress: impl Into<ProgressReporter>) -> Self {
        let progress = progress.into();
        self.change(|scope| scope.progress = progress)
    }

    /// With a value of the caller's own, found again by its type.
    #[must_use]
    pub fn with_extension<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.change(|scope| {
            scope.extensions.insert(TypeId::of::<T>(), Extension(Arc::new(value)));
        })
    }

    fn change(mut self, change: impl FnOnce(&mut Scope)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}
