//! Cancellations of tool calls of other programs.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rockbot_core::messaging::{MessageContext, MessageHandler, SubscribeOptions};
use rockbot_core::{BoxError, MessageId};
use tokio_util::sync::CancellationToken;

use crate::workers::ToolCallCancelled;

/// Maximum number of cancellations that are kept for calls that have not arrived yet.
const MAX_EARLY: usize = 1024;

/// Returns the topic of cancellations with the options of its subscription: every instance gets
/// all, since none knows which one has the call.
pub(crate) fn cancel_subscription() -> (String, SubscribeOptions) {
    let options = SubscribeOptions::new().ephemeral().with_concurrency(8);
    (crate::workers::CANCEL_TOPIC.to_owned(), options)
}

/// The calls that this host runs for others, by the ids of their messages.
#[derive(Debug, Default)]
pub(crate) struct RunningCalls(Mutex<CallTokens>);

#[derive(Debug, Default)]
struct CallTokens {
    running: HashMap<MessageId, CancellationToken>,
    /// The calls that were cancelled while no call of the id ran, latest last.
    early: VecDeque<MessageId>,
}

/// A call that runs. Dropping it forgets the call.
pub(super) struct RunningCall<'a> {
    calls: &'a RunningCalls,
    id: MessageId,
    pub(super) token: CancellationToken,
}

impl RunningCalls {
    /// Registers a call that begins. Its token is cancelled already if the cancellation came first.
    pub(super) fn begin(&self, id: &MessageId) -> RunningCall<'_> {
        let token = CancellationToken::new();
        let mut calls = self.lock();
        if calls.early.contains(id) {
            token.cancel();
        }
        calls.running.insert(id.clone(), token.clone());
        drop(calls);
        RunningCall {
            calls: self,
            id: id.clone(),
            token,
        }
    }

    fn cancel(&self, id: MessageId) {
        let mut calls = self.lock();
        match calls.running.get(&id) {
            Some(token) => token.cancel(),
            None => {
                calls.early.push_back(id);
                if calls.early.len() > MAX_EARLY {
                    calls.early.pop_front();
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, CallTokens> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.calls.lock().running.remove(&self.id);
    }
}

/// Cancels calls of other programs whose callers have given up.
pub(crate) struct Cancellations(pub(crate) Arc<RunningCalls>);

#[async_trait]
impl MessageHandler<ToolCallCancelled> for Cancellations {
    async fn handle(&self, cancelled: ToolCallCancelled, _: &MessageContext) -> Result<(), BoxError> {
        self.0.cancel(cancelled.message_id);
        Ok(())
    }
}
