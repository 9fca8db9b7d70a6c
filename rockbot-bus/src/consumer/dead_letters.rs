//! Dead letters as all brokers record them.
//!
//! A dead letter is published by the bus, not rejected to the broker: the broker would copy it to
//! the dead-letter queues of all subscriptions with that topic, and could not record the error.

use rockbot_core::MessageId;
use rockbot_core::messaging::DeadLetterReason;
use rockbot_core::support::loggable;

/// Logs that a message becomes a dead letter.
pub(crate) fn log_dead_letter(
    subscription: &str,
    topic: &str,
    message: &MessageId,
    attempts: u32,
    reason: DeadLetterReason,
    why: &str,
) {
    tracing::warn!(
        %subscription, topic = %loggable(topic), message_id = %loggable(message.as_str()), attempts, ?reason,
        last_error = %loggable(why), "a message becomes a dead letter"
    );
}

/// Returns the name of a reason in a header.
pub(crate) fn reason_name(reason: DeadLetterReason) -> &'static str {
    match reason {
        DeadLetterReason::Rejected => "rejected",
        DeadLetterReason::Unsubscribed => "unsubscribed",
        DeadLetterReason::Closed => "closed",
        _ => "exhausted",
    }
}

/// Returns the reason of this name. An unknown reason is exhaustion, the usual reason of brokers.
pub(crate) fn reason_named(name: Option<&str>) -> DeadLetterReason {
    match name {
        Some("rejected") => DeadLetterReason::Rejected,
        Some("unsubscribed") => DeadLetterReason::Unsubscribed,
        Some("closed") => DeadLetterReason::Closed,
        _ => DeadLetterReason::Exhausted,
    }
}
