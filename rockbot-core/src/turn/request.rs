//! The request that starts a turn.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::given_history::{self, GivenHistoryError};
use super::{Approver, Budget, BusyPolicy, Recipient, ResultMode, TurnParent};
use crate::chat::{ChatMessage, ModelSettings, ModelTier, OutputMode, OutputSchema};
use crate::content::Content;
use crate::context::{Extensions, Origin, Priority};
use crate::store::{Namespace, StorePath};
use crate::tool::ToolFilter;
use crate::trust::{Label, Trust};
use crate::{CallContext, Digest, MessageId, Principal, SessionId, TraceContext, TurnId};

/// A message that asks for an answer.
///
/// # Examples
///
/// The same message is the same turn:
///
/// ```
/// # use rockbot_core::turn::TurnRequest;
/// let request = TurnRequest::new("session-1", "message-1", "What is the time?");
/// assert_eq!(request.turn_id(), TurnRequest::new("session-1", "message-1", "other").turn_id());
/// ```
///
/// A channel of the program's own, here mail, says who wrote the message, how far that can be
/// trusted, and where the reply goes:
///
/// ```
/// # use rockbot_core::context::{Extensions, Origin, Priority};
/// # use rockbot_core::trust::{Label, Trust};
/// # use rockbot_core::turn::{BusyPolicy, TurnRequest};
/// struct Mailbox(&'static str);
///
/// let mut extensions = Extensions::new();
/// extensions.insert(Mailbox("inbox"));
/// let request = TurnRequest::new("thread-9", "<17@mail.example>", "Where is my parcel?")
///     .with_principal("ann")
///     .with_source("mail")
///     .with_origin(Origin::Bus)
///     .with_priority(Priority::Scheduled)
///     .with_trust(Trust::Untrusted)
///     .with_label(Label::untrusted("mail:ann"))
///     .with_busy(BusyPolicy::Steer)
///     .with_extensions(extensions)
///     .with_trace("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
///     .with_reply_to("mail.out")
///     .with_correlation_id("<17@mail.example>");
/// assert_eq!(request.reply_to.as_deref(), Some("mail.out"));
/// ```
///
/// A turn that another turn asks for is its part, with a model, a budget and an answer of its own:
///
/// ```
/// # use rockbot_core::chat::{ModelTier, OutputMode, OutputSchema};
/// # use rockbot_core::turn::{Budget, TurnRequest};
/// let schema = serde_json::json!({"type": "object", "properties": {"total": {"type": "integer"}}});
/// let asking = TurnRequest::new("session-1", "message-1", "Is the bill right?").turn_id();
/// let request = TurnRequest::new("session-1/sum", "call-1", "Add 17 and 4.")
///     .with_parent(asking, 1)
///     .with_tier(ModelTier::Low)
///     .with_budget(Budget::default().with_max_model_calls(2))
///     .with_instructions("Answer with the total alone.")
///     .with_output(OutputSchema::new("sum", schema))
///     .with_output_mode(OutputMode::Tool);
/// assert!(request.has_settings());
/// ```
///
/// A turn that looks around every hour has some of the host's tools, and notes of its own in
/// working memory:
///
/// ```
/// # use rockbot_core::context::Origin;
/// # use rockbot_core::store::StorePath;
/// # use rockbot_core::tool::{ToolFilter, ToolSelector};
/// # use rockbot_core::turn::{ResultMode, TurnRequest};
/// let request = TurnRequest::new("patrol/mail", "2026-11-27T09:00Z", "Is there mail that cannot wait?")
///     .with_agent("clerk")
///     .with_origin(Origin::Scheduled)
///     .with_announced(true)
///     .with_forgotten(true)
///     .with_tools(ToolFilter::only([ToolSelector::source("mcp:mail"), ToolSelector::group("working-memory")]))
///     .with_namespace(StorePath::new("patrol/mail")?)
///     .with_result_mode(ResultMode::VerbatimOutput);
/// assert!(request.has_settings());
/// # Ok::<(), rockbot_core::store::PathError>(())
/// ```
///
/// A turn that works in the background tells its result to the conversation that asked for it:
///
/// ```
/// # use rockbot_core::turn::{Recipient, TurnRequest};
/// let request = TurnRequest::new("research/7", "start", "Find out how cats purr.")
///     .with_recipient(Recipient::new("main", "cats"));
/// assert!(request.has_settings());
/// ```
///
/// A turn of another program works with the means of the operator, who is asked for approvals:
///
/// ```
/// # use rockbot_core::turn::{Approver, TurnRequest};
/// let request = TurnRequest::new("task-1", "start", "Buy milk.")
///     .with_principal("agent:planner")
///     .with_approver(Approver::new("local", "main"));
/// assert_eq!(request.approver.unwrap().session.as_str(), "main");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TurnRequest {
    /// Agent of the host that the message is for; `None`, the default, is the host's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Session that the message belongs to.
    pub session: SessionId,
    /// Id of the message. A message with the same id is a redelivery.
    pub message: MessageId,
    /// Content of the message.
    #[serde(rename = "text")]
    pub content: Content,
    /// Principal on whose behalf the turn runs. Default `local`.
    #[serde(default)]
    pub principal: Principal,
    /// Program that sent the message; part of the message's identity. Empty by default.
    #[serde(default)]
    pub source: String,
    /// Entry point that the message came through.
    #[serde(default, alias = "door")]
    pub origin: Origin,
    /// Priority in queues.
    #[serde(default)]
    pub priority: Priority,
    /// Trust in the sender.
    pub trust: Trust,
    /// Label of the message's sources, if a program made it of texts of others: it names their
    /// sources. `None` means that the sender wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// Tier of the model; `None` means the balanced one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<ModelTier>,
    /// Policy while the session is busy. Default [`BusyPolicy::Queue`].
    #[serde(default)]
    pub busy: BusyPolicy,
    /// Budget of the turn; `None` means the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Schema that the answer must match, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputSchema>,
    /// Way to make the model match the schema. Default [`OutputMode::Auto`]: the model's client
    /// knows it.
    #[serde(default, skip_serializing_if = "OutputMode::is_auto")]
    pub output_mode: OutputMode,
    /// Settings of the model in this turn, such as the temperature; they win over the settings of
    /// the model's behavior and tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_settings: Option<Arc<ModelSettings>>,
    /// Instructions for this turn alone, of the program that asks. The model reads them as part of
    /// its system message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Messages that the model sees instead of the stored conversation; `None` means the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Arc<[ChatMessage]>>,
    /// Values for the tools of this turn. The journal does not keep them, so a turn that is resumed
    /// in another process has no values.
    #[serde(skip)]
    pub extensions: Extensions,
    /// Filter of the tools of the turn; `None` means all tools of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Arc<ToolFilter>>,
    /// Namespace of the turn in working memory, such as `subagent/7`; `None` means the namespace of
    /// the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<StorePath>,
    /// Form of tool results in the answer. `None` means the form of the model's behavior for
    /// scheduled messages, and a summary for other messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_mode: Option<ResultMode>,
    /// Session that gets the result of the turn, whatever it is, as one message; `None` means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<Recipient>,
    /// Person who is asked for approvals, and may decide; `None` means the principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approver: Option<Approver>,
    /// Turn whose result the message is, set by the host that delivers the result to a [`Recipient`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_of: Option<TurnId>,
    /// `true` if the answer is [announced](super::Announcement) to the principal, since no caller
    /// waits for it. Default `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_announced: bool,
    /// `true` if the conversation memory keeps nothing of the turn, whose session is for it alone.
    /// Default `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_forgotten: bool,
    /// `true` if the message only informs. Default `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_informing: bool,
    /// `true` if the outcome lists the [statements of others](super::TurnOutcome::outside_statements).
    /// Default `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub marks_statements: bool,
    /// Turn that asks, if another turn does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TurnParent>,
    /// Caller's W3C `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Topic of the final reply, for the component that delivers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// Correlation id of the final reply, for the component that delivers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
}

impl TurnRequest {
    /// Creates a message of the local user.
    pub fn new(session: impl Into<SessionId>, message: impl Into<MessageId>, content: impl Into<Content>) -> Self {
        Self {
            agent: None,
            session: session.into(),
            message: message.into(),
            content: content.into(),
            principal: Principal::default(),
            source: String::new(),
            origin: Origin::User,
            priority: Priority::User,
            trust: Trust::User,
            label: None,
            tier: None,
            busy: BusyPolicy::Queue,
            budget: None,
            output: None,
            output_mode: OutputMode::Auto,
            model_settings: None,
            instructions: None,
            history: None,
            extensions: Extensions::new(),
            tools: None,
            namespace: None,
            result_mode: None,
            recipient: None,
            approver: None,
            result_of: None,
            is_announced: false,
            is_forgotten: false,
            is_informing: false,
            marks_statements: false,
            parent: None,
            trace: None,
            reply_to: None,
            correlation_id: None,
        }
    }

    /// Sets the agent of the host that the message is for. Default: the host's own.
    #[must_use]
    pub fn with_agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Sets the principal on whose behalf the turn runs. Default `local`.
    #[must_use]
    pub fn with_principal(mut self, principal: impl Into<Principal>) -> Self {
        self.principal = principal.into();
        self
    }

    /// Sets the program that sent the message; part of the message's identity. Default empty.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<String>) -> Self {
        self.source = source.into();
        self
    }

    /// Sets the entry point that the message came through. Default [`Origin::User`].
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Sets the priority in queues. Default [`Priority::User`].
    #[must_use]
    pub fn with_priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the trust in the sender. Default [`Trust::User`].
    #[must_use]
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Sets the label of the message's sources. Default `None`: the sender wrote it.
    #[must_use]
    pub fn with_label(mut self, label: impl Into<Option<Label>>) -> Self {
        self.label = label.into();
        self
    }

    /// Sets the tier of the model. Default `None`: the balanced one.
    #[must_use]
    pub fn with_tier(mut self, tier: impl Into<Option<ModelTier>>) -> Self {
        self.tier = tier.into();
        self
    }

    /// Sets the policy while the session is busy. Default [`BusyPolicy::Queue`].
    #[must_use]
    pub fn with_busy(mut self, busy: BusyPolicy) -> Self {
        self.busy = busy;
        self
    }

    /// Sets the budget of the turn. Default `None`: the host's.
    #[must_use]
    pub fn with_budget(mut self, budget: impl Into<Option<Budget>>) -> Self {
        self.budget = budget.into();
        self
    }

    /// Sets the schema that the answer must match. Default none.
    #[must_use]
    pub fn with_output(mut self, output: impl Into<Option<OutputSchema>>) -> Self {
        self.output = output.into();
        self
    }

    /// Sets the way to make the model match the schema. Default [`OutputMode::Auto`].
    #[must_use]
    pub fn with_output_mode(mut self, output_mode: OutputMode) -> Self {
        self.output_mode = output_mode;
        self
    }

    /// Sets instructions for this turn alone. Default none.
    #[must_use]
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets values for the tools of this turn. The journal does not keep them.
    #[must_use]
    pub fn with_extensions(mut self, extensions: Extensions) -> Self {
        self.extensions = extensions;
        self
    }

    /// Sets the filter of the tools of the turn. Default `None`: all tools of the host.
    ///
    /// The filter is in the journal, so a resumed turn has the same tools.
    #[must_use]
    pub fn with_tools(mut self, tools: impl Into<Option<ToolFilter>>) -> Self {
        self.tools = tools.into().map(Arc::new);
        self
    }

    /// Sets the namespace of the turn in working memory. Default `None`: the namespace of the
    /// session.
    #[must_use]
    pub fn with_namespace(mut self, namespace: impl Into<Option<StorePath>>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets the form of tool results in the answer. Default `None`: the form of the model's
    /// behavior for scheduled messages, and a summary for other messages.
    #[must_use]
    pub fn with_result_mode(mut self, result_mode: impl Into<Option<ResultMode>>) -> Self {
        self.result_mode = result_mode.into();
        self
    }

    /// Sets the session that gets the result of the turn. Default none.
    ///
    /// The end of the turn, whatever it is, becomes exactly one message of that session and this
    /// principal, also when the process ends in between. The agent's answer to the message is
    /// announced.
    #[must_use]
    pub fn with_recipient(mut self, recipient: impl Into<Option<Recipient>>) -> Self {
        self.recipient = recipient.into();
        self
    }

    /// Sets the person who is asked for approvals, and may decide. Default: the principal.
    #[must_use]
    pub fn with_approver(mut self, approver: impl Into<Option<Approver>>) -> Self {
        self.approver = approver.into();
        self
    }

    /// Sets whether the answer is [announced](super::Announcement) to the principal. Default `false`.
    #[must_use]
    pub fn with_announced(mut self, is_announced: bool) -> Self {
        self.is_announced = is_announced;
        self
    }

    /// Sets whether the conversation memory keeps nothing of the turn. Set it for a turn whose
    /// session is for it alone, such as the turn of a tool call. Default `false`.
    #[must_use]
    pub fn with_forgotten(mut self, is_forgotten: bool) -> Self {
        self.is_forgotten = is_forgotten;
        self
    }

    /// Sets whether the message only informs, such as a notice that an inbox forwards: it asks for
    /// nothing. Default `false`.
    ///
    /// A call that would change something outside is not run then, in the turn, in all work that it
    /// delegates, and in the turns that read the results of that work; the model reads that it may
    /// propose the change. If the request names an [`approver`](Self::approver), a call of the turn
    /// itself waits for the approver's decision instead. Reads, the agent's own memory, files and scripts, and delegation are as
    /// always. The program decides which messages are so; the host does not guess.
    ///
    /// ```
    /// # use rockbot_core::turn::TurnRequest;
    /// let notice = TurnRequest::new("inbox", "mail-7", "The meeting is at three.").with_informing(true);
    /// assert!(notice.is_informing);
    /// ```
    #[must_use]
    pub fn with_informing(mut self, is_informing: bool) -> Self {
        self.is_informing = is_informing;
        self
    }

    /// Sets whether the outcome lists the [statements of
    /// others](super::TurnOutcome::outside_statements). Default `false`, since the search costs time
    /// at the end of the turn.
    ///
    /// ```
    /// # use rockbot_core::turn::TurnRequest;
    /// let request = TurnRequest::new("main", "m1", "What is the rent?").with_marked_statements(true);
    /// assert!(request.marks_statements);
    /// ```
    #[must_use]
    pub fn with_marked_statements(mut self, marks_statements: bool) -> Self {
        self.marks_statements = marks_statements;
        self
    }

    /// Makes the turn a part of the work of `cx`, a call of a tool: it has the principal of the
    /// calling turn, no more trust than all that the calling model has read, and the calling turn as
    /// its parent.
    ///
    /// ```
    /// # use rockbot_core::{CallContext, TurnId};
    /// # use rockbot_core::turn::TurnRequest;
    /// let cx = CallContext::new("main").with_principal("ann".into()).with_turn(TurnId::from("turn-1"));
    /// let request = TurnRequest::new("research/7", "start", "Find out how cats purr.").with_caller(&cx);
    /// assert_eq!(request.principal.as_str(), "ann");
    /// assert_eq!(request.parent.map(|parent| parent.depth), Some(1));
    /// ```
    #[must_use]
    pub fn with_caller(mut self, cx: &CallContext) -> Self {
        self.principal = cx.principal().clone();
        self.origin = Origin::Subagent;
        self.priority = cx.priority().max(Priority::Subagent);
        self.trust = cx.content_trust();
        self.label = Some(cx.label()).filter(Label::is_untrusted);
        self.parent = cx.turn().map(|turn| TurnParent::new(turn.clone(), cx.depth() + 1));
        self.trace = cx.trace().map(TraceContext::traceparent);
        self.is_informing |= cx.is_informing();
        self
    }

    /// Sets the turn that asks, and the depth of this turn below it. Default none.
    #[must_use]
    pub fn with_parent(mut self, turn: impl Into<TurnId>, depth: u32) -> Self {
        self.parent = Some(TurnParent::new(turn, depth));
        self
    }

    /// Sets the caller's W3C `traceparent`. Default none.
    #[must_use]
    pub fn with_trace(mut self, trace: impl Into<String>) -> Self {
        self.trace = Some(trace.into());
        self
    }

    /// Sets the topic of the final reply. Default none.
    #[must_use]
    pub fn with_reply_to(mut self, reply_to: impl Into<String>) -> Self {
        self.reply_to = Some(reply_to.into());
        self
    }

    /// Sets the correlation id of the final reply. Default none.
    #[must_use]
    pub fn with_correlation_id(mut self, correlation_id: impl Into<String>) -> Self {
        self.correlation_id = Some(correlation_id.into());
        self
    }

    /// Sets the settings of the model in this turn. They are in the journal, so a resumed turn has
    /// the same.
    ///
    /// ```
    /// # use rockbot_core::chat::ModelSettings;
    /// # use rockbot_core::turn::TurnRequest;
    /// let request = TurnRequest::new("session-1", "message-1", "Write a poem.")
    ///     .with_model_settings(ModelSettings::new().with_temperature(1.2));
    /// assert_eq!(request.model_settings.and_then(|settings| settings.temperature), Some(1.2));
    /// ```
    #[must_use]
    pub fn with_model_settings(mut self, settings: ModelSettings) -> Self {
        self.model_settings = settings.shared();
        self
    }

    /// Sets the messages that the model sees instead of the stored conversation, such as the
    /// messages of a program that keeps conversations itself.
    ///
    /// They are in the journal. Their parts have the trust that they state, but never more than the
    /// request's sender, and the ids of their calls are replaced. The conversation of the session
    /// then gets this turn's message and answer, as always, and not these messages: a program that
    /// gives them each time has both.
    ///
    /// ```
    /// # use rockbot_core::chat::ChatMessage;
    /// # use rockbot_core::turn::TurnRequest;
    /// let before = vec![ChatMessage::user("I am Ann."), ChatMessage::assistant("Hello Ann.")];
    /// let request = TurnRequest::new("session-1", "message-1", "Who am I?").with_history(before);
    /// assert_eq!(request.check_history(), Ok(()));
    /// ```
    #[must_use]
    pub fn with_history(mut self, messages: Vec<ChatMessage>) -> Self {
        self.history = Some(messages.into());
        self
    }

    /// Checks the messages that the turn begins from. The host calls it before it accepts the request.
    ///
    /// # Errors
    ///
    /// Returns an error if they are too long, a call has no result or a result no call, or one is a
    /// system message although the sender is not the host.
    pub fn check_history(&self) -> Result<(), GivenHistoryError> {
        match &self.history {
            Some(messages) => given_history::check(messages, self.trust),
            None => Ok(()),
        }
    }

    /// Returns `true` if the message sets how it is to be answered, which a turn that runs already
    /// cannot honor.
    pub fn has_settings(&self) -> bool {
        let Self {
            output, tier, budget, ..
        } = self;
        let in_journal = output.is_some() || tier.is_some() || budget.is_some() || self.model_settings.is_some();
        let of_work = self.tools.is_some() || self.namespace.is_some() || self.result_mode.is_some();
        let of_work = of_work || self.recipient.is_some() || self.agent.is_some() || self.is_informing;
        let of_context = self.instructions.is_some() || self.history.is_some() || !self.extensions.is_empty();
        in_journal || of_work || of_context
    }

    /// Returns `true` if a message of a user or of a bus asks for the turn, instead of another turn
    /// or a schedule.
    ///
    /// ```
    /// # use rockbot_core::context::Origin;
    /// # use rockbot_core::turn::TurnRequest;
    /// let request = TurnRequest::new("session-1", "message-1", "Is there mail?");
    /// assert!(request.is_user_message());
    /// assert!(!request.clone().with_parent(request.turn_id(), 1).is_user_message());
    /// assert!(!request.with_origin(Origin::Scheduled).is_user_message());
    /// ```
    pub fn is_user_message(&self) -> bool {
        matches!(self.origin, Origin::User | Origin::Bus) && self.parent.is_none()
    }

    /// Returns the namespace of the turn in working memory, unless it is the session's.
    pub fn own_namespace(&self) -> Option<Namespace> {
        self.namespace.clone().map(Namespace::new)
    }

    /// Returns the id of the turn that this message starts. It is derived from principal, source,
    /// session, message id and the agent, if one is named, so that a redelivered message maps to the
    /// same turn.
    pub fn turn_id(&self) -> TurnId {
        let parts = [
            self.principal.as_str(),
            &self.source,
            self.session.as_str(),
            self.message.as_str(),
        ];
        let agent = self.agent.as_deref();
        // `Digest::of` prefixes each part with its length, so no two different identities run together.
        TurnId::from(Digest::of(parts.into_iter().chain(agent)).short())
    }

    /// Returns the digest of the content: different content under the same identity is an error.
    pub fn body_digest(&self) -> Digest {
        self.content.digest()
    }
}
