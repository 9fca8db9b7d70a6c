//! The agent as the program that embeds it sees it: questions, answers, streams, decisions.

mod stream;

use std::sync::Arc;

use rockbot_core::chat::OutputSchema;
use rockbot_core::store::ConversationMemory;
use rockbot_core::turn::{Approval, ApprovalRequest, ProgressSink, TurnOutcome, TurnRequest, TurnStatus};
use rockbot_core::{IdSource, MessageId, Principal, SessionId, TurnId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio_util::task::AbortOnDropHandle;

pub use stream::TurnStream;

use crate::engine::{TurnCall, TurnError, TurnService};
use stream::{ProgressQueue, ProgressWriter, SharedCall};

/// A handle to the agent of a host. It is cheap to clone and can be used from any task.
///
/// Messages of one session are answered in order, sessions side by side. A turn that waits for a person frees its
/// session: later messages are answered meanwhile, and the turn joins the end of the queue after the decision.
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
    turns: TurnService,
    ids: Arc<dyn IdSource>,
}

// Not all providers accept a schema other than an object's.
#[derive(Deserialize, JsonSchema)]
struct Wrapped<T> {
    /// The answer.
    value: T,
}

impl Agent {
    pub(crate) fn new(turns: TurnService, ids: Arc<dyn IdSource>) -> Self {
        Self { turns, ids }
    }

    /// Sends `text` in `session` and waits for the answer, which displays as its text.
    ///
    /// Dropping the future cancels the turn. A turn that waits for a person is not cancelled that way: it continues
    /// with [`Agent::decide`], ends with [`Agent::cancel`], or expires.
    ///
    /// # Errors
    ///
    /// Returns an error if the turn ends without an answer, waits for a person, or the message cannot be accepted.
    pub async fn ask(&self, session: impl Into<SessionId>, text: impl Into<String>) -> Result<TurnOutcome, TurnError> {
        self.answer(self.request(session, text)).await
    }

    /// Sends `text` in `session` and waits for an answer of type `T`.
    ///
    /// The model is given the JSON Schema of `T`; a `T` that is not an object is requested as `{"value": T}`. An answer
    /// that does not fit the schema is requested again, without tools, before the turn fails.
    ///
    /// # Errors
    ///
    /// Returns an error as [`Agent::ask`] does, and if the answer cannot be deserialized as a `T`.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().says(r#"{"value": 42}"#);
    /// let host = AgentHost::in_memory().chat(model).build()?;
    /// let answer: u32 = host.agent().ask_as("math", "How much is 6 times 7?").await?;
    /// assert_eq!(answer, 42);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ask_as<T>(&self, session: impl Into<SessionId>, text: impl Into<String>) -> Result<T, TurnError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let schema = OutputSchema::of::<T>();
        let (expected, is_object) = (schema.name.clone(), schema.schema["type"] == "object");
        let output = match is_object {
            true => schema,
            false => OutputSchema::of::<Wrapped<T>>(),
        };
        let request = TurnRequest {
            output: Some(output),
            ..self.request(session, text)
        };
        let answer = self.answer(request).await?.text;
        let parsed = match is_object {
            true => serde_json::from_str(&answer),
            false => serde_json::from_str(&answer).map(|Wrapped { value }| value),
        };
        parsed.map_err(|source| TurnError::Output { expected, source })
    }

    /// Sends `text` in `session` and returns a stream of the turn's progress, up to its outcome.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime: the turn is spawned at once, before the stream is polled.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_util::StreamExt as _;
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
    pub fn stream(&self, session: impl Into<SessionId>, text: impl Into<String>) -> TurnStream {
        self.stream_turn(self.request(session, text))
    }

    /// Runs a turn with settings of its own: another principal, tier, budget, or busy policy.
    ///
    /// Turns are idempotent: the same message, submitted again, has the same turn and the same outcome for a day. That
    /// holds for a cancelled turn, too, for example one whose caller stopped waiting; to try again, submit a message
    /// with another id.
    ///
    /// # Errors
    ///
    /// Returns an error if the message cannot be accepted. A turn that ends without an answer is an outcome here, not
    /// an error.
    pub async fn run(&self, request: TurnRequest) -> Result<TurnOutcome, TurnError> {
        self.turns.call(TurnCall::new(request, ProgressSink::none())).await
    }

    /// Runs a turn as [`Agent::run`] does, and returns a stream of its progress, up to its outcome.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime, as [`Agent::stream`] does.
    pub fn stream_turn(&self, request: TurnRequest) -> TurnStream {
        let queue = Arc::new(ProgressQueue::default());
        let writer = ProgressWriter::new(&queue);
        let (turns, turn, progress) = (self.turns.clone(), request.turn_id(), writer.sink());
        let engine = self.turns.engine().clone();
        let call = SharedCall::new(async move {
            let ended = match turns.call(TurnCall::new(request, progress)).await {
                // Parked: the stream stays open, and reports continue after the decision.
                Ok(outcome) if !outcome.is_final() => turns.engine().outcome(&turn).await,
                ended => ended,
            };
            // A turn that had ended before this call reports nothing by itself, so its end is reported here. For the
            // others this adds nothing: the queue takes one end.
            writer.end(ended);
        });
        let running = engine.spawn(call.clone());
        TurnStream::new(queue, call, AbortOnDropHandle::new(running))
    }

    /// Creates a message of the local user with a new id.
    pub fn request(&self, session: impl Into<SessionId>, text: impl Into<String>) -> TurnRequest {
        TurnRequest::new(session, MessageId::from(self.ids.next_id()), text)
    }

    /// Returns the tool calls that wait for a person's decision.
    pub fn approvals(&self) -> Vec<ApprovalRequest> {
        self.turns.engine().approval_requests()
    }

    /// Applies a person's decision about a tool call. After the last decision that a turn waits for, it continues.
    /// Once this returns, the decision is in the journal and survives a crash.
    ///
    /// # Errors
    ///
    /// Returns an error if no call waits for this decision, or the journal cannot be written.
    pub async fn decide(&self, decision: Approval) -> Result<(), TurnError> {
        self.turns.engine().decide(decision).await
    }

    /// Waits for the end of a turn, including one that waits for a person or that was resumed after a restart. Outcomes
    /// are kept for a day.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal does not know the turn, or the host stops first.
    pub async fn outcome(&self, turn: &TurnId) -> Result<TurnOutcome, TurnError> {
        self.turns.engine().outcome(turn).await
    }

    /// Cancels a turn that works or waits for a person. The result of a mutating call that is running is still awaited
    /// and recorded. Once this returns, the turn will not continue, even when the host stops at once and restarts.
    ///
    /// # Errors
    ///
    /// Returns an error if this process does not work on the turn, or no longer does because the host stops.
    pub async fn cancel(&self, turn: &TurnId) -> Result<(), TurnError> {
        self.turns.engine().cancel(turn).await
    }

    /// Deletes the conversation of a session of the local user.
    ///
    /// # Errors
    ///
    /// Returns an error if the conversation cannot be written.
    pub async fn reset(&self, session: impl Into<SessionId>) -> Result<(), TurnError> {
        Ok(self.memory().clear(&Principal::default(), &session.into()).await?)
    }

    /// Returns the sessions of the local user that have a conversation.
    ///
    /// # Errors
    ///
    /// Returns an error if the conversations cannot be read.
    pub async fn sessions(&self) -> Result<Vec<SessionId>, TurnError> {
        Ok(self.memory().sessions(&Principal::default()).await?)
    }

    /// Returns `true` while no turn works or waits for its session and no model is being asked, as far as the chat
    /// client [keeps count](rockbot_core::chat::ModelInfo::is_busy). Work that can wait may begin then. Turns that
    /// wait for a person do not count.
    pub fn is_idle(&self) -> bool {
        self.turns.engine().is_idle()
    }

    fn memory(&self) -> &Arc<dyn ConversationMemory> {
        &self.turns.engine().memory
    }

    async fn answer(&self, request: TurnRequest) -> Result<TurnOutcome, TurnError> {
        let outcome = self.run(request).await?;
        match outcome.status {
            TurnStatus::Parked(_) => Err(TurnError::NeedsApproval(Box::new(outcome))),
            _ if outcome.is_answer() => Ok(outcome),
            _ => Err(TurnError::Unanswered(Box::new(outcome))),
        }
    }
}
