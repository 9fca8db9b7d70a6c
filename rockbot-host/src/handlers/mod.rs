//! The host's own message handlers: users' messages, conversation history, feedback, decisions,
//! and tool calls of other agents.
//!
//! The pipeline calls them once it has deduplicated and routed a delivery. Each returns how the
//! delivery ends: acknowledged, retried a little later, or a dead letter. `progress.rs` and
//! `reply.rs` send the reports and the final reply of a turn back to the user.

mod approval;
mod feedback;
mod history;
mod message;
mod progress;
mod reply;
mod running_calls;
mod tool_call;
mod tool_outcome;
mod unasked;

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::messaging::{MessageContext, MessageRoute, PartitionBy, RetryPolicy, SubscribeOptions};
use rockbot_core::store::{ConversationMemory, FeedbackStore};
use rockbot_core::turn::{Approval, BusyPolicy};
use rockbot_core::user::{ConversationHistoryRequest, UserFeedback, UserMessage, UserProxyTopics};
use rockbot_core::{Clock, IdSource};

pub(crate) use reply::BusReplySender;
use reply::publish_with_retries;
pub(crate) use running_calls::{Cancellations, RunningCalls, cancel_subscription};
pub(crate) use tool_call::{TOOL_TOPIC, ToolInvokeHandler, tool_subscription};
pub(crate) use tool_outcome::{Outcomes, outcome_subscription};
pub(crate) use unasked::BusAnnouncer;

use crate::engine::{MAX_WAITING, TurnService};
use crate::pipeline::HostRoute;
use approval::Decisions;
use feedback::Thumbs;
use history::Histories;
use message::UserMessages;

/// The options of an agent that serves users over the bus.
///
/// # Examples
///
/// ```
/// use rockbot_core::turn::BusyPolicy;
/// use rockbot_host::UserOptions;
///
/// let options = UserOptions::default().with_busy(BusyPolicy::Steer);
/// assert_eq!(options.busy, BusyPolicy::Steer);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserOptions {
    /// Treatment of a message whose conversation is busy with an earlier message. Default
    /// [`BusyPolicy::Queue`].
    pub busy: BusyPolicy,
    /// Maximum size of the images and files that a reply carries, in bytes, of all together. Default
    /// 512 KiB.
    ///
    /// The interface is in another process, without the host's store of media. A larger image stays a
    /// reference, with its media type and size, and so do all for 0.
    pub max_reply_media_bytes: u64,
}

/// Default of [`UserOptions::max_reply_media_bytes`].
pub(crate) const MAX_REPLY_MEDIA_BYTES: u64 = 512 * 1024;

impl Default for UserOptions {
    fn default() -> Self {
        Self {
            busy: BusyPolicy::default(),
            max_reply_media_bytes: MAX_REPLY_MEDIA_BYTES,
        }
    }
}

impl UserOptions {
    /// Sets the treatment of a message whose conversation is busy.
    #[must_use]
    pub fn with_busy(mut self, busy: BusyPolicy) -> Self {
        self.busy = busy;
        self
    }

    /// Sets the maximum size of the images and files that a reply carries, in bytes, of all together.
    #[must_use]
    pub fn with_max_reply_media_bytes(mut self, max: u64) -> Self {
        self.max_reply_media_bytes = max;
        self
    }
}

/// Returns the topics of users' messages with the options of their subscriptions. Messages of one
/// conversation are accepted in the order of sending; conversations are served side by side.
pub(crate) fn user_subscriptions() -> [(String, SubscribeOptions); 4] {
    let retry = RetryPolicy::default().with_max_attempts(message::MAX_ATTEMPTS);
    let in_order = SubscribeOptions::new()
        .with_retry(retry)
        .with_concurrency(2 * MAX_WAITING)
        .with_partition_by(PartitionBy::new("session", message::session_of));
    [
        (UserProxyTopics::USER_MESSAGE.to_owned(), in_order),
        (UserProxyTopics::HISTORY_REQUEST.to_owned(), SubscribeOptions::new()),
        (UserProxyTopics::USER_FEEDBACK.to_owned(), SubscribeOptions::new()),
        (UserProxyTopics::APPROVAL_DECISION.to_owned(), SubscribeOptions::new()),
    ]
}

/// Returns `true` if a message names another agent than this agent.
fn is_for_another(agent: Option<&str>, cx: &MessageContext) -> bool {
    agent.is_some_and(|agent| !agent.eq_ignore_ascii_case(cx.identity().name()))
}

/// The parts that the handlers of users' messages work with.
pub(crate) struct HandlerDeps {
    pub(crate) options: UserOptions,
    /// Maximum time of each of these handlers.
    pub(crate) time_limit: Duration,
    pub(crate) turns: TurnService,
    pub(crate) memory: Arc<dyn ConversationMemory>,
    pub(crate) feedback: Arc<dyn FeedbackStore>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Returns the routes of users' messages to their handlers.
pub(crate) fn user_routes(deps: HandlerDeps) -> [HostRoute; 4] {
    let messages = UserMessages {
        turns: deps.turns.clone(),
        options: deps.options,
        // Half of it: a handler that exceeded its limit could not tell the user why.
        patience: deps.time_limit / 2,
    };
    let thumbs = Thumbs {
        store: deps.feedback,
        ids: deps.ids,
        clock: deps.clock,
    };
    [
        // Idempotent: a message that is sent again under the same id leads to the same turn and its reply.
        HostRoute::idempotent(MessageRoute::of::<UserMessage, _>(messages)),
        MessageRoute::of::<ConversationHistoryRequest, _>(Histories(deps.memory)).into(),
        MessageRoute::of::<UserFeedback, _>(thumbs).into(),
        MessageRoute::of::<Approval, _>(Decisions(deps.turns)).into(),
    ]
}
