//! Talking to an agent from the program that embeds it.

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
use stream::{Calling, Queue, Reports};

/// An agent of this process: cheap to clone, usable from any task.
///
/// Messages of one session are answered in order, sessions side by side. A turn that waits for a person frees its
/// session: later messages are answered meanwhile, and the turn joins the end of the queue once somebody decides.
#[derive(Debug, Clone)]
pub struct Agent {
    turns: TurnService,
    ids: Arc<dyn IdSource>,
}

// Not every provider can be given another shape than an object's.
#[derive(Deserialize, JsonSchema)]
struct Wrapped<T> {
    /// The answer.
    value: T,
}

impl Agent {
    pub(crate) fn new(turns: TurnService, ids: Arc<dyn IdSource>) -> Self {
        Self { turns, ids }
    }

    /// Says `text` in `session` and waits for the answer, which prints as its text.
    ///
    /// Dropping the call cancels the turn. Once the turn waits for a person it belongs to whoever decides: only
    /// [`Agent::decide`], [`Agent::cancel`] and time move it.
    ///
    /// # Errors
    ///
    /// Fails when the turn ends without an answer, when it waits for a person, and when the message cannot be
    /// accepted.
    pub async fn ask(&self, session: impl Into<SessionId>, text: impl Into<String>) -> Result<TurnOutcome, TurnError> {
        self.answer(self.request(session, text)).await
    }

    /// As [`Agent::ask`], for an answer of type `T`.
    ///
    /// The model is told the JSON Schema of `T`; a `T` that is no object is asked for as `{"value": T}`. An answer
    /// that does not fit is asked for again, without tools, before the turn fails.
    ///
    /// # Errors
    ///
    /// Fails as [`Agent::ask`] does, and when the answer cannot be read as a `T`.
    pub async fn ask_as<T>(&self, session: impl Into<SessionId>, text: impl Into<String>) -> Result<T, TurnError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let own = OutputSchema::of::<T>();
        let (expected, is_object) = (own.name.clone(), own.schema["type"] == "object");
        let output = match is_object {
            true => own,
            false => OutputSchema::of::<Wrapped<T>>(),
        };
        let request = TurnRequest {
            output: Some(output),
            ..self.request(session, text)
        };
        let answer = self.answer(request).await?.text;
        let read = match is_object {
            true => serde_json::from_str(&answer),
            false => serde_json::from_str(&answer).map(|Wrapped { value }| value),
        };
        read.map_err(|source| TurnError::Output { expected, source })
    }

    /// As [`Agent::ask`], seeing what happens while it happens.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime: the turn begins at once, also when nobody reads.
    pub fn stream(&self, session: impl Into<SessionId>, text: impl Into<String>) -> TurnStream {
        self.stream_turn(self.request(session, text))
    }

    /// Runs a turn with settings of its own: another principal, tier, budget, or busy policy.
    ///
    /// A message has one turn and one final reply, also when it is delivered again: one whose turn was cancelled,
    /// perhaps because its caller stopped waiting, is answered with that cancellation for a day. To try again, send
    /// a message with an id of its own.
    ///
    /// # Errors
    ///
    /// Fails when the message cannot be accepted. A turn that ends without an answer is an outcome here.
    pub async fn run(&self, request: TurnRequest) -> Result<TurnOutcome, TurnError> {
        self.turns.call(TurnCall::new(request, ProgressSink::none())).await
    }

    /// As [`Agent::run`], seeing what happens while it happens.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime, as [`Agent::stream`] does.
    pub fn stream_turn(&self, request: TurnRequest) -> TurnStream {
        let queue = Arc::new(Queue::default());
        let reports = Reports::to(&queue);
        let (turns, turn, progress) = (self.turns.clone(), request.turn_id(), reports.sink());
        let engine = self.turns.engine().clone();
        let calling = Calling::new(async move {
            let ended = match turns.call(TurnCall::new(request, progress)).await {
                // Its reports go on once somebody decides.
                Ok(outcome) if !outcome.is_final() => turns.engine().outcome(&turn).await,
                ended => ended,
            };
            // A turn that had ended before has nobody to report to; its end is told here.
            reports.end(ended);
        });
        let running = engine.spawn(calling.clone());
        TurnStream::new(queue, calling, AbortOnDropHandle::new(running))
    }

    /// A message of the local user with a fresh id.
    pub fn request(&self, session: impl Into<SessionId>, text: impl Into<String>) -> TurnRequest {
        TurnRequest::new(session, MessageId::from(self.ids.next_id()), text)
    }

    /// The calls that wait for a person.
    pub fn approvals(&self) -> Vec<ApprovalRequest> {
        self.turns.engine().approval_requests()
    }

    /// Decides about a call that waits. When it was the last one of its turn, the turn goes on.
    ///
    /// # Errors
    ///
    /// Fails when nothing waits for this decision.
    pub async fn decide(&self, decision: Approval) -> Result<(), TurnError> {
        self.turns.engine().decide(decision).await
    }

    /// Waits for the end of a turn, also one that waits for a person or that a restart interrupted.
    ///
    /// # Errors
    ///
    /// Fails when nobody knows the turn, and when the host stops first.
    pub async fn outcome(&self, turn: &TurnId) -> Result<TurnOutcome, TurnError> {
        self.turns.engine().outcome(turn).await
    }

    /// Ends a turn that works or waits for a person. What a mutating call does by then is still recorded. Once this
    /// returns the turn will not go on, also when the host stops at once and starts again.
    ///
    /// # Errors
    ///
    /// Fails when this process does not work on the turn, or works on it no more because the host stops.
    pub async fn cancel(&self, turn: &TurnId) -> Result<(), TurnError> {
        self.turns.engine().cancel(turn).await
    }

    /// Forgets what was said in a session of the local user.
    ///
    /// # Errors
    ///
    /// Fails when the conversation cannot be written.
    pub async fn reset(&self, session: impl Into<SessionId>) -> Result<(), TurnError> {
        Ok(self.memory().clear(&Principal::default(), &session.into()).await?)
    }

    /// The sessions of the local user that have a conversation.
    ///
    /// # Errors
    ///
    /// Fails when the conversations cannot be read.
    pub async fn sessions(&self) -> Result<Vec<SessionId>, TurnError> {
        Ok(self.memory().sessions(&Principal::default()).await?)
    }

    /// Whether no turn works or waits for its session, and no call of a model is under way, as far as the chat client
    /// [keeps count](rockbot_core::chat::ModelInfo::is_busy): work that can wait may begin. Turns that wait for a person
    /// do not count.
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
