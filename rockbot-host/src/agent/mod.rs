//! The agent as the program that embeds it sees it: questions, answers, streams, decisions.

mod announcements;
mod answer;
mod as_tool;
mod conversation;
mod handle;
mod output;
mod partial_json;
mod request;
mod stream;

use std::sync::Arc;

use futures_util::FutureExt as _;
use rockbot_core::content::Content;
use rockbot_core::store::{ConversationMemory, ConversationTurn};
use rockbot_core::turn::{
    Announcement, Approval, ApprovalRequest, OutputValidator, ProgressSink, TurnEvents, TurnFeed, TurnOutcome,
    TurnRequest,
};
use rockbot_core::{IdSource, MessageId, Principal, SessionId, ToolName, TurnId};
use tokio::sync::oneshot;

pub use announcements::AnnouncementStream;
pub use answer::{AnswerKind, Reply, Typed, WithOutcome};
pub use as_tool::AgentTool;
pub use conversation::{Conversation, ConversationError};
pub use handle::TurnHandle;
pub use output::{OutputProgress, OutputStream};
pub use request::AgentRequest;
pub use stream::TurnStream;

use crate::engine::{TurnCall, TurnError, TurnService, check_runtime};
use stream::SharedCall;

/// A handle to the agent of a host. It is cheap to clone and can be used from any task.
///
/// Messages of one session are answered in order, sessions side by side. A turn that waits for a
/// person frees its session: later messages are answered meanwhile, and the turn joins the end of
/// the queue after the decision.
///
/// # Examples
///
/// ```
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_host::AgentHost;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let host = AgentHost::in_memory()
///     .chat(ScriptedModel::new().says("Tea, then."))
///     .build()?;
/// let answer = host.agent().ask("kitchen", "Coffee is out.").await?;
/// assert_eq!(answer.to_string(), "Tea, then.");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Agent {
    shared: Arc<SharedAgent>,
    principal: Principal,
    /// The name of an agent beside the host's own.
    name: Option<Arc<str>>,
}

/// The parts that all handles of one agent share.
#[derive(Debug)]
struct SharedAgent {
    turns: TurnService,
    ids: Arc<dyn IdSource>,
}

impl Agent {
    pub(crate) fn new(turns: TurnService, ids: Arc<dyn IdSource>) -> Self {
        Self {
            shared: Arc::new(SharedAgent { turns, ids }),
            principal: Principal::default(),
            name: None,
        }
    }

    /// Returns a handle to the agent of this name beside the host's own.
    pub(crate) fn beside(&self, name: &str) -> Self {
        Self {
            name: Some(name.into()),
            ..self.clone()
        }
    }

    /// Returns the session of the host that belongs to a session of this agent: agents beside the
    /// host's own have sessions of their own.
    fn session(&self, session: impl Into<SessionId>) -> SessionId {
        let session = session.into();
        match &self.name {
            Some(name) => SessionId::from(format!("{name}/{session}")),
            None => session,
        }
    }

    /// Returns `request` as one to this agent, unless it names one itself.
    fn addressed(&self, mut request: TurnRequest) -> TurnRequest {
        let name = self.name.as_deref().map(str::to_owned);
        request.agent = request.agent.take().or(name);
        request
    }

    /// Returns a handle to the same agent on behalf of `principal`: its questions, conversations and
    /// sessions are that principal's. Stores never read across principals.
    ///
    /// The agent of a host serves the principal `local`, the person at the keyboard. A program that
    /// serves several people gives each a handle.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().says("Hello Ann.").says("Hello Bob.");
    /// let host = AgentHost::in_memory().chat(model).build()?;
    /// let [ann, bob] = ["ann", "bob"].map(|name| host.agent().for_principal(name));
    ///
    /// ann.ask("main", "I am Ann.").await?;
    /// bob.ask("main", "I am Bob.").await?;
    /// assert_eq!(ann.history("main").await?[0].content, "I am Ann.");
    /// assert_eq!(bob.history("main").await?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn for_principal(&self, principal: impl Into<Principal>) -> Self {
        Self {
            principal: principal.into(),
            ..self.clone()
        }
    }

    /// Returns the principal on whose behalf this handle asks. Default `local`.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Creates a request with `content`, such as a text, in `session`. Awaiting it sends the content
    /// and waits for the answer, which displays as its text.
    ///
    /// Setters on the request choose the tier, a budget, the type of the answer and more, for this
    /// turn alone; see [`AgentRequest`].
    pub fn ask(&self, session: impl Into<SessionId>, content: impl Into<Content>) -> AgentRequest {
        AgentRequest::new(self.clone(), self.request(session, content))
    }

    /// Sends `content` in `session` and returns a stream of the turn's progress, up to its outcome.
    /// It is short for `agent.ask(session, content).stream()`.
    ///
    /// The turn is spawned at once, before the stream is polled, and goes on if the stream is
    /// dropped. Outside a tokio runtime the stream has an error alone.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_core::turn::TurnProgress;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let host = AgentHost::in_memory()
    ///     .chat(ScriptedModel::new().says("Tea, then."))
    ///     .build()?;
    /// let mut turn = host.agent().stream("kitchen", "Coffee is out.");
    /// while let Some(progress) = turn.next().await {
    ///     if let TurnProgress::Final(outcome) = progress? {
    ///         assert_eq!(outcome.text, "Tea, then.");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(&self, session: impl Into<SessionId>, content: impl Into<Content>) -> TurnStream {
        self.ask(session, content).stream()
    }

    /// Runs the turn of a complete request. [`Agent::ask`] is the usual way. This method is for a
    /// program that stores or forwards requests, or that sets the values that only channels set,
    /// such as the origin and the trust.
    ///
    /// Turns are idempotent: the same message, submitted again, has the same turn and the same
    /// outcome for a day. That holds for a cancelled turn, too, for example a turn whose caller
    /// stopped waiting; to try again, submit a message with another id.
    ///
    /// # Errors
    ///
    /// Returns an error if the message cannot be accepted. A turn that ends without an answer is an
    /// outcome here, not an error.
    pub async fn run(&self, request: TurnRequest) -> Result<TurnOutcome, TurnError> {
        self.shared
            .turns
            .call(TurnCall::new(self.addressed(request), ProgressSink::none()))
            .await
    }

    /// Runs a turn as [`Agent::run`] does, and returns a stream of its progress, up to its outcome.
    pub fn stream_turn(&self, request: TurnRequest) -> TurnStream {
        self.stream_checked(self.addressed(request), Vec::new())
    }

    fn stream_checked(&self, request: TurnRequest, validators: Vec<Arc<dyn OutputValidator>>) -> TurnStream {
        let turns = self.shared.turns.clone();
        let turn = request.turn_id();
        let feed = TurnFeed::new();
        let mut call = TurnCall::new(request, ProgressSink::none()).with_feed(feed.clone());
        call.validators = validators;
        let (sender, ended) = oneshot::channel();
        let waited = turn.clone();
        let call = SharedCall::new(async move {
            let outcome = match turns.call(call).await {
                // Parked: the stream stays open, and reports continue after the decision.
                Ok(outcome) if !outcome.is_final() => turns.engine().outcome(&waited).await,
                ended => ended,
            };
            // Fails when the stream was dropped.
            let _ = sender.send(outcome);
        });
        // The task that polls the call may be aborted with the host.
        let abort = self.shared.turns.engine().abort.clone();
        let end = async move {
            let ended = abort.run_until_cancelled(ended).await;
            ended.and_then(Result::ok).unwrap_or(Err(TurnError::Halted))
        };
        // Before the call begins, so that the feed has its reader when the turn is parked.
        let events = TurnEvents::new(turn, Some(&feed), 0, Box::pin(end));
        let running = match check_runtime() {
            Ok(()) => Some(self.shared.turns.engine().spawn(call.clone()).abort_handle()),
            Err(_) => {
                // Where nothing can be spawned, the first poll ends the call with that error.
                call.clone().now_or_never();
                None
            }
        };
        TurnStream::new(events, Some((call, running)))
    }

    /// Returns a stream of the progress of a turn that runs already: first its reports so far, then
    /// the reports that follow, up to its outcome. Any number of readers can attach to a turn.
    ///
    /// A turn keeps its reports if it was streamed or [started](AgentRequest::start), if its
    /// message came over a bus with a topic for progress, or if it was resumed after a restart.
    /// Another turn reports its end alone, and so does a turn that has ended.
    ///
    /// # Errors
    ///
    /// Returns an error if this handle's principal has no such turn in the journal, or the turn was
    /// not resumed.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_core::turn::TurnProgress;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let host = AgentHost::in_memory().chat(ScriptedModel::new().says("Tea, then.")).build()?;
    /// let turn = host.agent().ask("kitchen", "Coffee is out.").start().await?;
    /// let mut reader = host.agent().attach(turn.id()).await?;
    /// while let Some(progress) = reader.next().await {
    ///     if let TurnProgress::Final(outcome) = progress? {
    ///         assert_eq!(outcome.text, "Tea, then.");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn attach(&self, turn: &TurnId) -> Result<TurnStream, TurnError> {
        self.attach_after(turn, 0).await
    }

    /// Returns a stream as [`Agent::attach`] does, of the reports after a
    /// [`sequence`](TurnStream::sequence) that an earlier reader had reached. After a restart of
    /// the host the positions begin anew, and all reports are returned.
    ///
    /// # Errors
    ///
    /// Returns an error as [`Agent::attach`] does.
    pub async fn attach_after(&self, turn: &TurnId, sequence: u64) -> Result<TurnStream, TurnError> {
        let engine = self.shared.turns.engine();
        engine.check_access(turn, &self.principal).await?;
        Ok(TurnStream::new(engine.events(turn, sequence).await?, None))
    }

    /// Returns a stream of the announcements to this handle's principal: the results of work in the
    /// background, and requests for approvals in turns that no caller waits for. They wait for a
    /// reader, also over a restart.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_core::turn::{Recipient, TurnRequest};
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().says("With their larynx.").says("Cats purr with their larynx.");
    /// let host = AgentHost::in_memory().chat(model).build()?;
    /// let research = TurnRequest::new("research/1", "start", "How do cats purr?")
    ///     .with_recipient(Recipient::new("main", "cats"));
    /// host.agent().run(research).await?;
    /// let mut announcements = host.agent().announcements();
    /// let said = announcements.next().await.expect("the host runs");
    /// assert_eq!((said.session.as_str(), said.content.as_text()), ("main", Some("Cats purr with their larynx.")));
    /// # Ok(())
    /// # }
    /// ```
    pub fn announcements(&self) -> AnnouncementStream {
        AnnouncementStream::new(self.shared.turns.engine().clone(), self.principal.clone())
    }

    /// Announces something to this handle's principal, in a session. The announcement waits until a
    /// reader of [`Agent::announcements`], or an interface on the bus of the host, takes it: at
    /// most 7 days, and as long as fewer than 1 000 newer announcements wait. The model does not
    /// see it.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal does not take it.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let host = AgentHost::in_memory().chat(ScriptedModel::new()).build()?;
    /// host.agent().announce("main", "The backup is done.").await?;
    /// let said = host.agent().announcements().next().await.expect("the host runs");
    /// assert_eq!(said.content, "The backup is done.");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn announce(&self, session: impl Into<SessionId>, content: impl Into<Content>) -> Result<(), TurnError> {
        let announcement = Announcement::new(self.principal.clone(), self.session(session), content);
        let id = format!("of-program-{}", self.shared.ids.next_id());
        let announcements = &self.shared.turns.engine().announcements;
        Ok(announcements.append(&id, announcement).await?)
    }

    /// Starts the turn of a complete request, and returns once it is in the journal. The turn goes on
    /// by itself, also after a restart: it belongs to the request's principal, and its result goes to
    /// the request's [recipient](TurnRequest::with_recipient), if it has one. It is
    /// [`AgentRequest::start`] for the requests of [`Agent::run`]; several are joined as any futures.
    ///
    /// # Errors
    ///
    /// Returns an error if the message cannot be accepted.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_util::future::try_join_all;
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = ScriptedModel::new().says("an answer").says("an answer");
    /// let host = AgentHost::in_memory().chat(model).build()?;
    /// let agent = host.agent();
    /// let mut turns = Vec::new();
    /// for topic in ["cats", "dogs"] {
    ///     turns.push(agent.spawn(agent.request(topic, format!("What is new about {topic}?"))).await?);
    /// }
    /// let outcomes = try_join_all(turns.iter().map(|turn| turn.outcome())).await?;
    /// assert_eq!(outcomes.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn spawn(&self, request: TurnRequest) -> Result<TurnHandle, TurnError> {
        self.start(self.addressed(request), Vec::new()).await
    }

    async fn start(
        &self,
        request: TurnRequest,
        validators: Vec<Arc<dyn OutputValidator>>,
    ) -> Result<TurnHandle, TurnError> {
        let mut call = TurnCall::new(request, ProgressSink::none()).with_feed(TurnFeed::new());
        call.validators = validators;
        let turn = self.shared.turns.start(call).await?;
        Ok(TurnHandle::new(self.clone(), turn))
    }

    /// Creates a tool that lets another agent give tasks to this agent. The description tells the
    /// calling model the strengths of this agent; see [`AgentTool`] for the values that pass from
    /// the calling turn to this agent's.
    ///
    /// The tool works as long as the host of this agent lives. It may be a tool of the same host,
    /// added with [`AgentHost::add_tool`](crate::AgentHost::add_tool): then the agent gives tasks to
    /// itself.
    pub fn as_tool(&self, name: impl Into<ToolName>, description: impl Into<String>) -> AgentTool {
        AgentTool::new(self, name.into(), description.into())
    }

    /// Creates a message of this handle's principal with a new id, for [`Agent::run`].
    pub fn request(&self, session: impl Into<SessionId>, content: impl Into<Content>) -> TurnRequest {
        let message = MessageId::from(self.shared.ids.next_id());
        let request = TurnRequest::new(self.session(session), message, content);
        self.addressed(request.with_principal(self.principal.clone()))
    }

    /// Returns the tool calls of this handle's principal that wait for a person's decision; the
    /// calls of all principals if it is an [approver](crate::AgentHostBuilder::approver).
    pub fn approvals(&self) -> Vec<ApprovalRequest> {
        self.shared.turns.engine().approval_requests(&self.principal)
    }

    /// Applies a person's decision about a tool call. After the last decision that a turn waits for,
    /// it continues. Once this returns, the decision is in the journal and survives a crash.
    ///
    /// # Errors
    ///
    /// Returns an error if no call of this handle's principal waits for this decision, or the journal
    /// cannot be written.
    pub async fn decide(&self, decision: Approval) -> Result<(), TurnError> {
        self.shared.turns.engine().decide(decision, &self.principal).await
    }

    /// Waits for the end of a turn, also of a turn that waits for a person or that was resumed
    /// after a restart. Outcomes are kept for a day.
    ///
    /// # Errors
    ///
    /// Returns an error if this handle's principal has no such turn in the journal, or the host stops
    /// first.
    pub async fn outcome(&self, turn: &TurnId) -> Result<TurnOutcome, TurnError> {
        let engine = self.shared.turns.engine();
        engine.check_access(turn, &self.principal).await?;
        engine.outcome(turn).await
    }

    /// Cancels a turn that works or waits for a person. The result of a mutating call that is running
    /// is still awaited and recorded. Once this returns, the cancellation is in the journal: the turn
    /// will not continue, even when the process is killed at once and the host restarts.
    ///
    /// # Errors
    ///
    /// Returns an error if this process does not work on the turn, or no longer does because the
    /// host stops. Returns an error, too, if the journal does not take the cancellation: then the
    /// turn is stopped, and stays so while this process lives.
    pub async fn cancel(&self, turn: &TurnId) -> Result<(), TurnError> {
        let engine = self.shared.turns.engine();
        engine.check_access(turn, &self.principal).await?;
        engine.cancel(turn).await
    }

    /// Returns a handle to the conversation of a session: to export, import or fork it.
    pub fn conversation(&self, session: impl Into<SessionId>) -> Conversation {
        Conversation::new(self.clone(), self.session(session))
    }

    /// Returns the conversation of a session, as far as the conversation memory keeps it, oldest
    /// entry first.
    ///
    /// # Errors
    ///
    /// Returns an error if the conversation cannot be read.
    pub async fn history(&self, session: impl Into<SessionId>) -> Result<Vec<ConversationTurn>, TurnError> {
        Ok(self
            .memory()
            .recent(&self.principal, &self.session(session), usize::MAX)
            .await?)
    }

    /// Deletes the conversation of a session.
    ///
    /// # Errors
    ///
    /// Returns an error if the conversation cannot be written.
    pub async fn reset(&self, session: impl Into<SessionId>) -> Result<(), TurnError> {
        Ok(self.memory().clear(&self.principal, &self.session(session)).await?)
    }

    /// Returns the sessions of this handle's principal that have a conversation. The host's own
    /// agent has the sessions of the agents beside it, too, as `NAME/SESSION`.
    ///
    /// # Errors
    ///
    /// Returns an error if the conversations cannot be read.
    pub async fn sessions(&self) -> Result<Vec<SessionId>, TurnError> {
        let sessions = self.memory().sessions(&self.principal).await?;
        let Some(name) = &self.name else {
            return Ok(sessions);
        };
        let own = |session: &SessionId| {
            session
                .as_str()
                .strip_prefix(&**name)?
                .strip_prefix('/')
                .map(SessionId::from)
        };
        Ok(sessions.iter().filter_map(own).collect())
    }

    /// Returns `true` while no turn works or waits for its session and no model is being asked, as
    /// far as the chat client [keeps count](rockbot_core::chat::ModelInfo::is_busy). Work that can
    /// wait may begin then. Turns that wait for a person do not count.
    pub fn is_idle(&self) -> bool {
        self.shared.turns.engine().is_idle()
    }

    fn memory(&self) -> &dyn ConversationMemory {
        &*self.shared.turns.engine().memory
    }
}

fn turn_call(request: TurnRequest, progress: ProgressSink, validators: Vec<Arc<dyn OutputValidator>>) -> TurnCall {
    let mut call = TurnCall::new(request, progress);
    call.validators = validators;
    call
}
