//! Processors of the messages that a model is about to read.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::TurnView;
use crate::chat::{ChatMessage, Role};
use crate::shared::share;
use crate::{BoxError, CallId};

/// A processor of the conversation that a model is about to read: it may drop, shorten, add and
/// reorder messages.
///
/// Processors are asked before each question to the model, in the order of their addition, after
/// the loop policies and after the host's own compaction; questions to judges are out of their
/// sight. The turn goes on with their result, so the next request begins with the processed
/// messages, and the provider's prompt cache stays valid. The stored conversation keeps the
/// original messages: the next turn begins with them again.
///
/// A message that is returned as the same [`Arc`] is kept. The journal records which messages
/// were kept and which were added, and nothing when all were kept; a turn that continues after a
/// crash does not process a question again whose edits are recorded.
///
/// The result must be a conversation that providers accept ([`check_history`]). If it is not, and
/// after an error, a panic or a time-out (30 seconds by default), the messages stay as they were,
/// with a warning in the log.
///
/// A message that sums up others should have the least trust of them in its provenance.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use rockbot_core::BoxError;
/// use rockbot_core::chat::{ChatMessage, ContextReason};
/// use rockbot_core::turn::{HistoryProcessor, TurnView};
///
/// /// Keeps only the last four messages of earlier turns.
/// #[derive(Debug)]
/// struct ShortMemory;
///
/// #[async_trait]
/// impl HistoryProcessor for ShortMemory {
///     async fn process(
///         &self,
///         messages: Vec<Arc<ChatMessage>>,
///         _: &TurnView,
///     ) -> Result<Vec<Arc<ChatMessage>>, BoxError> {
///         let is_past = |message: &Arc<ChatMessage>| message.why() == ContextReason::History;
///         let mut surplus = messages.iter().filter(|message| is_past(message)).count().saturating_sub(4);
///         let mut keeps = |message: &Arc<ChatMessage>| {
///             let drops = surplus > 0 && is_past(message);
///             surplus -= usize::from(drops);
///             !drops
///         };
///         Ok(messages.into_iter().filter(|message| keeps(message)).collect())
///     }
/// }
/// ```
#[async_trait]
pub trait HistoryProcessor: fmt::Debug + Send + Sync + 'static {
    /// Returns the messages that the model is to read.
    ///
    /// # Errors
    ///
    /// Returns an error if the messages cannot be processed; the model then reads them as they are.
    async fn process(
        &self,
        messages: Vec<Arc<ChatMessage>>,
        turn: &TurnView,
    ) -> Result<Vec<Arc<ChatMessage>>, BoxError>;

    /// Returns the name in logs and in the journal. Default: the name of the type.
    fn name(&self) -> &str {
        std::any::type_name::<Self>()
    }
}

share! {
    HistoryProcessor {
        async process<'a>(messages: Vec<Arc<ChatMessage>>, turn: &'a TurnView) -> Result<Vec<Arc<ChatMessage>>, BoxError>;
        fn name() -> &str;
    }
}

/// The reason why a model must not be sent these messages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// No message is left.
    #[error("no message is left: keep at least the user's message")]
    Empty,
    /// The last message is an answer of the model, and no message asks for another answer.
    #[error("the last message is an answer of the model: keep the message to which it is to react")]
    EndsWithAnswer,
    /// A tool call lacks its result.
    #[error("call {0} has no result directly after its answer: keep both or drop both")]
    CallWithoutResult(CallId),
    /// A result does not belong to the answer before it.
    #[error("the result of call {0} is not directly after the answer that made the call: keep both or drop both")]
    ResultWithoutCall(CallId),
    /// The same call stands in the conversation twice.
    #[error("call {0} is in the conversation twice: add no copies of answers with tool calls")]
    RepeatedCall(CallId),
}

/// Checks that a provider accepts these messages: the results of an answer's tool calls are
/// directly after it, and the last message is not an answer.
///
/// # Errors
///
/// Returns the first problem.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use rockbot_core::chat::ChatMessage;
/// use rockbot_core::turn::{HistoryError, check_history};
///
/// let result = Arc::new(ChatMessage::tool("1".into(), "ok"));
/// let orphan = [Arc::new(ChatMessage::user("hi")), result];
/// assert_eq!(check_history(&orphan), Err(HistoryError::ResultWithoutCall("1".into())));
/// ```
pub fn check_history(messages: &[Arc<ChatMessage>]) -> Result<(), HistoryError> {
    let (mut open, mut seen): (Vec<&CallId>, _) = (Vec::new(), HashSet::new());
    for message in messages {
        if let Some(call) = &message.tool_call_id {
            let place = open.iter().position(|open| *open == call);
            open.remove(place.ok_or_else(|| HistoryError::ResultWithoutCall(call.clone()))?);
            continue;
        }
        if let Some(call) = open.first() {
            return Err(HistoryError::CallWithoutResult((*call).clone()));
        }
        for call in &message.tool_calls {
            if !seen.insert(&call.id) {
                return Err(HistoryError::RepeatedCall(call.id.clone()));
            }
            open.push(&call.id);
        }
    }
    match (open.first(), messages.last()) {
        (Some(call), _) => Err(HistoryError::CallWithoutResult((*call).clone())),
        (None, None) => Err(HistoryError::Empty),
        (None, Some(last)) if last.role == Role::Assistant => Err(HistoryError::EndsWithAnswer),
        (None, Some(_)) => Ok(()),
    }
}

/// A [`HistoryProcessor`] of an async function. [`history_fn`] creates one.
pub struct HistoryFn<F>(F);

/// Creates a processor from an async function.
///
/// # Examples
///
/// ```
/// use rockbot_core::chat::{ChatMessage, Provenance, Role};
/// use rockbot_core::turn::history_fn;
///
/// let reminded = history_fn(|mut messages, turn| async move {
///     if turn.model_calls > 10 {
///         let text = "Remember that the user reads on a phone.";
///         messages.push(ChatMessage::new(Role::User, text, Provenance::HOST).into());
///     }
///     Ok(messages)
/// });
/// # let _: &dyn rockbot_core::turn::HistoryProcessor = &reminded;
/// ```
pub fn history_fn<F, Fut>(process: F) -> HistoryFn<F>
where
    F: Fn(Vec<Arc<ChatMessage>>, TurnView) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<Arc<ChatMessage>>, BoxError>> + Send,
{
    HistoryFn(process)
}

#[async_trait]
impl<F, Fut> HistoryProcessor for HistoryFn<F>
where
    F: Fn(Vec<Arc<ChatMessage>>, TurnView) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<Arc<ChatMessage>>, BoxError>> + Send,
{
    async fn process(
        &self,
        messages: Vec<Arc<ChatMessage>>,
        turn: &TurnView,
    ) -> Result<Vec<Arc<ChatMessage>>, BoxError> {
        (self.0)(messages, turn.clone()).await
    }

    fn name(&self) -> &str {
        std::any::type_name::<F>()
    }
}

impl<F> fmt::Debug for HistoryFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HistoryFn").field(&std::any::type_name::<F>()).finish()
    }
}
