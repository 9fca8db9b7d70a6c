//! What people say to the agent over the bus: messages, questions for a conversation, feedback, decisions.

mod approval;
mod feedback;
mod history;
mod message;
mod progress;
mod reply;
mod tool_call;

use std::sync::Arc;

use rockbot_core::messaging::{MessageContext, MessageRoute, PartitionBy, RetryPolicy, SubscribeOptions};
use rockbot_core::store::{ConversationMemory, FeedbackStore};
use rockbot_core::turn::{Approval, BusyPolicy};
use rockbot_core::user::{ConversationHistoryRequest, UserFeedback, UserMessage, UserProxyTopics};
use rockbot_core::{Clock, IdSource};

pub(crate) use reply::Replies;
use reply::publish_with_retries;
pub(crate) use tool_call::{TOOL_TOPIC, ToolInvokeHandler, tool_subscription};

use crate::engine::TurnService;
use crate::pipeline::HostRoute;
use approval::Decisions;
use feedback::Thumbs;
use history::Histories;
use message::UserMessages;

/// How an agent serves the people who write to it over the bus.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserOptions {
    /// What a message does when its conversation is busy with an earlier one. By default it waits.
    pub busy: BusyPolicy,
}

impl UserOptions {
    /// With this for messages whose conversation is busy.
    #[must_use]
    pub fn with_busy(mut self, busy: BusyPolicy) -> Self {
        self.busy = busy;
        self
    }
}

/// The topics, and how each is served: what is said in one conversation is accepted in the order in which it was said.
pub(crate) fn user_subscriptions() -> [(String, SubscribeOptions); 4] {
    let retry = RetryPolicy {
        max_attempts: message::ATTEMPTS,
        ..RetryPolicy::default()
    };
    let in_order = SubscribeOptions::new()
        .with_retry(retry)
        .with_concurrency(16)
        .with_partition_by(PartitionBy::new("session", message::session_of));
    [
        (UserProxyTopics::USER_MESSAGE.to_owned(), in_order),
        (UserProxyTopics::HISTORY_REQUEST.to_owned(), SubscribeOptions::new()),
        (UserProxyTopics::USER_FEEDBACK.to_owned(), SubscribeOptions::new()),
        (UserProxyTopics::APPROVAL_DECISION.to_owned(), SubscribeOptions::new()),
    ]
}

/// Whether a message names an agent, and another one than this.
fn is_for_another(agent: Option<&str>, cx: &MessageContext) -> bool {
    agent.is_some_and(|agent| !agent.eq_ignore_ascii_case(cx.identity().name()))
}

/// What the handlers work with.
pub(crate) struct HandlerDeps {
    pub(crate) options: UserOptions,
    pub(crate) turns: TurnService,
    pub(crate) memory: Arc<dyn ConversationMemory>,
    pub(crate) feedback: Arc<dyn FeedbackStore>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) clock: Arc<dyn Clock>,
}

pub(crate) fn user_routes(deps: HandlerDeps) -> [HostRoute; 4] {
    let messages = UserMessages {
        turns: deps.turns.clone(),
        options: deps.options,
    };
    let thumbs = Thumbs {
        store: deps.feedback,
        ids: deps.ids,
        clock: deps.clock,
    };
    [
        HostRoute::idempotent(MessageRoute::of::<UserMessage, _>(messages)),
        MessageRoute::of::<ConversationHistoryRequest, _>(Histories(deps.memory)).into(),
        MessageRoute::of::<UserFeedback, _>(thumbs).into(),
        MessageRoute::of::<Approval, _>(Decisions(deps.turns)).into(),
    ]
}
