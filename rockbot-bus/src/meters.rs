//! The metrics of all buses, in the facade `metrics`: counters without labels, since topics of
//! replies are unbounded.

use metrics::{counter, describe_counter};

const PUBLISHED: &str = "rockbot.messaging.broker.published";
const CONFIRMED: &str = "rockbot.messaging.broker.confirmed";
const RETURNED: &str = "rockbot.messaging.broker.returned";
const REFUSED: &str = "rockbot.messaging.broker.refused";
const REDELIVERED: &str = "rockbot.messaging.broker.redelivered";
#[cfg(feature = "rabbitmq")]
const SHORTENED: &str = "rockbot.messaging.broker.shortened";
const RECONNECTS: &str = "rockbot.messaging.broker.reconnects";

/// Registers the descriptions with the program's recorder, if it has one.
pub(crate) fn describe() {
    describe_counter!(PUBLISHED, "messages that were sent to the broker, repetitions included");
    describe_counter!(CONFIRMED, "messages that the broker has confirmed");
    describe_counter!(
        RETURNED,
        "messages that came back, since no queue is bound to their topic"
    );
    describe_counter!(REFUSED, "messages that the broker refused, since a queue is full");
    describe_counter!(
        REDELIVERED,
        "deliveries of messages that the broker had delivered before"
    );
    #[cfg(feature = "rabbitmq")]
    describe_counter!(
        SHORTENED,
        "dead letters that are kept without some headers, which do not fit into a frame"
    );
    describe_counter!(RECONNECTS, "connections that were opened again");
}

/// Counts a message that is sent.
pub(crate) fn sent() {
    counter!(PUBLISHED).increment(1);
}

/// Counts a message that the broker has.
pub(crate) fn confirmed() {
    counter!(CONFIRMED).increment(1);
}

/// Counts a message that came back, since it reaches no queue.
#[cfg(feature = "rabbitmq")]
pub(crate) fn returned() {
    counter!(RETURNED).increment(1);
}

/// Counts a message that the broker refused.
pub(crate) fn refused() {
    counter!(REFUSED).increment(1);
}

/// Counts a delivery that is not the first of its message.
#[cfg(feature = "rabbitmq")]
pub(crate) fn redelivered() {
    counter!(REDELIVERED).increment(1);
}

/// Counts a dead letter that has lost headers.
#[cfg(feature = "rabbitmq")]
pub(crate) fn shortened() {
    counter!(SHORTENED).increment(1);
}

/// Counts a connection that is back.
pub(crate) fn reconnected() {
    counter!(RECONNECTS).increment(1);
}
