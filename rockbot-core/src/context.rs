//! The context that travels with every call: on whose behalf it is made, where the work came
//! from, its deadline and its grants.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// The token of [`CallContext::cancellation`], of the version of tokio-util that this crate uses.
pub use tokio_util::sync::CancellationToken;

pub use crate::extensions::Extensions;
use crate::trust::Label;
pub use crate::trust::Trust;
pub use crate::wait_reason::WaitReason;
use crate::{CallId, Digest, Principal, SessionId, TraceContext, TurnId};

/// The entry point of the work. It is set by the channel, never by the message.
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
    /// A message bus, or another program that calls this host's tools.
    Bus,
}

/// The priority of work that has to wait for a permit, such as a model call. Earlier variants go
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Priority {
    /// A user waits for the answer.
    #[default]
    User,
    /// A schedule fired.
    Scheduled,
    /// Another turn waits for the answer.
    Subagent,
    /// Background work without a waiting caller: the agent maintains its own memory.
    Dream,
}

/// The approval of one exact tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Grant {
    /// The id of the approved call.
    pub call: CallId,
    /// The [`Grant::args_hash`] of the approved call. With other arguments it is another call, which
    /// the grant does not cover.
    pub args_hash: Digest,
}

impl Grant {
    /// Creates the approval of the call `call` with the arguments of `args_hash`, a
    /// [`Grant::args_hash`].
    pub fn new(call: impl Into<CallId>, args_hash: Digest) -> Self {
        Self {
            call: call.into(),
            args_hash,
        }
    }

    /// Returns the digest that binds a grant to a tool and its exact arguments.
    pub fn args_hash(tool: &str, arguments: &str) -> Digest {
        Digest::of([tool, arguments])
    }
}

/// Reports the progress of a tool call, or of a call of the model, to the listener of its turn.
///
/// It is the narrow side of a turn's [`ProgressSink`](crate::turn::ProgressSink): a tool can report
/// texts of its own and that it waits, but no event of the turn, such as its end. Without a
/// listener a report costs nothing. Cheap to clone.
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

    /// Receives the report that the call waits for something, `at_most` for this time. Default: it
    /// becomes a text. It must not block.
    fn waiting(&self, at_most: Option<Duration>, why: WaitReason) {
        self.tool_progress(why.in_words(at_most));
    }
}

impl<Shared: ProgressListener + ?Sized> ProgressListener for Arc<Shared> {
    fn tool_progress(&self, text: String) {
        (**self).tool_progress(text);
    }

    fn waiting(&self, at_most: Option<Duration>, why: WaitReason) {
        (**self).waiting(at_most, why);
    }
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

    /// Returns `true` if there is a listener. A tool can skip reports that are expensive to compute
    /// otherwise.
    pub fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Reports how far the tool is, in a short text for the user.
    pub fn report(&self, text: impl Into<String>) {
        if let Some(listener) = &self.0 {
            listener.tool_progress(text.into());
        }
    }

    /// Reports that the call waits for something that the user cannot see, and for how long
    /// `at_most`; `None` if that is unknown. Waits of less than a second are not worth a report.
    pub fn waiting(&self, at_most: Option<Duration>, why: WaitReason) {
        if let Some(listener) = &self.0 {
            listener.waiting(at_most, why);
        }
    }
}

impl fmt::Debug for ProgressReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProgressReporter").field(&self.is_open()).finish()
    }
}

/// The context of the work that a call belongs to. It is one shared allocation and cheap to clone.
///
/// A context is passed along unchanged; the `with_*` methods return a copy that differs in one
/// field. These fields cross a bus: principal, remaining time, trace and idempotency key. Trust
/// and grants never do: the receiving host derives them from the channel.
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
    /// The label of everything that the model had read; see [`CallContext::label`].
    content: Label,
    /// `true` if a person approved this exact call.
    is_endorsed: bool,
    /// `true` if the message of the work only informs.
    is_informing: bool,
    /// The user's own message, in turns that have read text of others.
    user_message: Option<Arc<str>>,
    deadline: Option<Instant>,
    cancellation: CancellationToken,
    grants: Arc<[Grant]>,
    /// The key that another program gave to a call, if the call came from there.
    idempotency_key: Option<Arc<str>>,
    trace: Option<TraceContext>,
    progress: ProgressReporter,
    extensions: Extensions,
}

impl CallContext {
    /// Creates the context of a user's call in `session`: principal `local`, no deadline, no grants,
    /// no progress listener.
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
            content: Label::HOST,
            is_endorsed: false,
            is_informing: false,
            user_message: None,
            deadline: None,
            cancellation: CancellationToken::new(),
            grants: Arc::from([]),
            idempotency_key: None,
            trace: None,
            progress: ProgressReporter::none(),
            extensions: Extensions::new(),
        }))
    }

    /// Returns the conversation.
    pub fn session(&self) -> &SessionId {
        &self.0.session
    }

    /// Returns the principal on whose behalf the call is made.
    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// Returns the turn that this call belongs to, if any.
    pub fn turn(&self) -> Option<&TurnId> {
        self.0.turn.as_ref()
    }

    /// Returns the turn that started this call's turn, if any.
    pub fn parent(&self) -> Option<&TurnId> {
        self.0.parent.as_ref()
    }

    /// Returns the number of turns above this call's turn: 0 for a turn that a message started.
    pub fn depth(&self) -> u32 {
        self.0.depth
    }

    /// Returns `true` if the message of the work [only
    /// informs](crate::turn::TurnRequest::with_informing).
    pub fn is_informing(&self) -> bool {
        self.0.is_informing
    }

    /// Returns the entry point of the work.
    pub fn origin(&self) -> Origin {
        self.0.origin
    }

    /// Returns the priority of the work.
    pub fn priority(&self) -> Priority {
        self.0.priority
    }

    /// Returns how far the originator of the work can be trusted.
    pub fn trust(&self) -> Trust {
        self.0.trust
    }

    /// Returns how far everything can be trusted that led to this call: its originator, and all
    /// that the model had read when it made the call.
    ///
    /// It is [`Trust::Untrusted`] as soon as the model has read text of an untrusted source. Such a
    /// text is a tool's result (unless the tool's [output is its
    /// own](crate::tool::ToolHints::own_output)), an answer that was made of such text, or content
    /// in another program, whose sources are unknown.
    ///
    /// A tool layer can decide by it, for example deny a tool that sends mail once the model may have
    /// read an injected prompt. A tool that starts further work passes it on as the trust of that
    /// work.
    pub fn content_trust(&self) -> Trust {
        self.0.trust.min(self.0.content.trust())
    }

    /// Returns the label of everything that led to this call: its trust is the [content
    /// trust](Self::content_trust), its sources are the untrusted sources that the model had read
    /// when it made the call.
    ///
    /// Everything that the call stores or starts carries this label, unless the call [is
    /// endorsed](Self::is_endorsed).
    pub fn label(&self) -> Label {
        let mut label = self.0.content.clone();
        label.join(&Label::of(self.0.trust));
        label
    }

    /// Returns `true` if a person approved exactly this call. Its writes may be trusted as the
    /// person's own, whatever the model had read. The host sets it for the call that the grant
    /// names, and for no other.
    pub fn is_endorsed(&self) -> bool {
        self.0.is_endorsed
    }

    /// Returns the message of the user on whose behalf the model works, if it is the user's own and
    /// text alone. The host sets it once the model has read text of others: an order in it may
    /// endorse a call.
    pub fn user_message(&self) -> Option<&str> {
        self.0.user_message.as_deref()
    }

    /// Returns the deadline of the work, if it has one.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.deadline
    }

    /// Returns the time that is left until the deadline, or `None` if there is no deadline. Zero once
    /// the deadline is over.
    pub fn time_left(&self) -> Option<Duration> {
        let deadline = self.0.deadline?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    /// Returns the token that is cancelled when the work is no longer wanted.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.cancellation
    }

    /// Returns the position of the work in a trace, if it has one. Within a tool it is the position
    /// of the call's span, so that a tool passes it on to the services that it asks.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.0.trace.as_ref()
    }

    /// Returns the reporter of progress: by it a tool, or a client of a model, tells the listener
    /// of its turn how far it is.
    pub fn progress(&self) -> &ProgressReporter {
        &self.0.progress
    }

    /// Returns `true` if this exact call, with these arguments, was approved.
    pub fn is_granted(&self, call: &CallId, tool: &str, arguments: &str) -> bool {
        let matches = |grant: &Grant| grant.call == *call && grant.args_hash == Grant::args_hash(tool, arguments);
        self.0.grants.iter().any(matches)
    }

    /// Returns the idempotency key of `call`: turn id and call id, or the key that the program gave
    /// that asked for the call. Pass it to services that accept idempotency keys: they recognize a
    /// repetition of the call by it.
    pub fn idempotency_key(&self, call: &CallId) -> String {
        match (&self.0.turn, &self.0.idempotency_key) {
            (Some(turn), _) => format!("{turn}/{call}"),
            (None, Some(key)) => key.to_string(),
            (None, None) => format!("{}/{call}", self.0.session),
        }
    }

    /// Returns the value of type `T` that was attached with [`CallContext::with_extension`].
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.extensions.get()
    }

    /// Sets the principal on whose behalf the call is made. Default `local`.
    #[must_use]
    pub fn with_principal(self, principal: Principal) -> Self {
        self.change(|scope| scope.principal = principal)
    }

    /// Sets the key that another program gave to the call.
    #[must_use]
    pub fn with_idempotency_key(self, key: impl Into<Arc<str>>) -> Self {
        self.change(|scope| scope.idempotency_key = Some(key.into()))
    }

    /// Sets the turn that the call belongs to.
    #[must_use]
    pub fn with_turn(self, turn: TurnId) -> Self {
        self.change(|scope| scope.turn = Some(turn))
    }

    /// Sets the turn that started this work, and the number of turns above it.
    #[must_use]
    pub fn with_parent(self, parent: TurnId, depth: u32) -> Self {
        self.change(|scope| {
            scope.parent = Some(parent);
            scope.depth = depth;
        })
    }

    /// Sets the entry point. Default [`Origin::User`].
    #[must_use]
    pub fn with_origin(self, origin: Origin) -> Self {
        self.change(|scope| scope.origin = origin)
    }

    /// Sets the priority. Default [`Priority::User`].
    #[must_use]
    pub fn with_priority(self, priority: Priority) -> Self {
        self.change(|scope| scope.priority = priority)
    }

    /// Sets how far the originator can be trusted. Default [`Trust::User`].
    #[must_use]
    pub fn with_trust(self, trust: Trust) -> Self {
        self.change(|scope| scope.trust = trust)
    }

    /// Lowers the content trust to `content`, because the model has read content of that trust. It
    /// never rises again.
    #[must_use]
    pub fn with_content_trust(self, content: Trust) -> Self {
        self.with_label(&Label::of(content))
    }

    /// Adds the label of content that the model has read. The label only gets more restrictive.
    #[must_use]
    pub fn with_label(self, read: &Label) -> Self {
        self.change(|scope| scope.content.join(read))
    }

    /// Sets whether a person approved exactly the call that gets this context. Default `false`.
    #[must_use]
    pub fn with_endorsement(self, is_endorsed: bool) -> Self {
        self.change(|scope| scope.is_endorsed = is_endorsed)
    }

    /// Sets the message of the user on whose behalf the model works. Default: none.
    #[must_use]
    pub fn with_user_message(self, message: impl Into<Arc<str>>) -> Self {
        let message = message.into();
        self.change(|scope| scope.user_message = Some(message))
    }

    /// Sets the deadline.
    #[must_use]
    pub fn with_deadline(self, deadline: Instant) -> Self {
        self.change(|scope| scope.deadline = Some(deadline))
    }

    /// Sets the token that cancels the work.
    #[must_use]
    pub fn with_cancellation(self, cancellation: CancellationToken) -> Self {
        self.change(|scope| scope.cancellation = cancellation)
    }

    /// Replaces all grants.
    #[must_use]
    pub fn with_grants(self, grants: impl Into<Arc<[Grant]>>) -> Self {
        self.change(|scope| scope.grants = grants.into())
    }

    /// Sets the position of the work in a trace.
    #[must_use]
    pub fn with_trace(self, trace: TraceContext) -> Self {
        self.change(|scope| scope.trace = Some(trace))
    }

    /// Sets the reporter that [`CallContext::progress`] returns. The host sets the reporter of each
    /// call.
    #[must_use]
    pub fn with_progress(self, progress: ProgressReporter) -> Self {
        self.change(|scope| scope.progress = progress)
    }

    /// Sets whether the message of the work only informs. Default `false`.
    #[must_use]
    pub fn with_informing(self, is_informing: bool) -> Self {
        self.change(|scope| scope.is_informing = is_informing)
    }

    /// Attaches a value of the caller's own, which [`CallContext::extension`] finds by its type. A
    /// second value of a type replaces the first.
    #[must_use]
    pub fn with_extension<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.change(|scope| scope.extensions.insert(value))
    }

    /// Attaches all values of `extensions`, as [`CallContext::with_extension`] attaches one.
    #[must_use]
    pub fn with_extensions(self, extensions: &Extensions) -> Self {
        self.change(|scope| scope.extensions.extend(extensions))
    }

    fn change(mut self, change: impl FnOnce(&mut Scope)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}
