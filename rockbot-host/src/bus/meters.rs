//! Metrics of publishing and of handling messages.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use rockbot_core::messaging::Disposition;

/// Label of all topics with ephemeral subscriptions only, such as reply topics, whose number is
/// unbounded.
pub(super) const TEMPORARY: &str = "_temporary";

/// Label of all topics without a subscription. Publishers choose them, so they must not become
/// series of their own.
pub(super) const UNSUBSCRIBED: &str = "_nobody";

/// The publish meters of a topic.
#[derive(Debug)]
pub(super) struct PublishMeters {
    destination: Arc<str>,
    meters: OnceLock<(Counter, Histogram)>,
}

impl PublishMeters {
    /// Creates the meters of a topic, or of a shared label.
    pub(super) fn new(destination: &str) -> Self {
        Self {
            destination: destination.into(),
            meters: OnceLock::new(),
        }
    }

    /// Records a published message and how long publishing took.
    pub(super) fn record(&self, took: Duration) {
        let (messages, duration) = self.meters.get_or_init(|| {
            let labels = [("messaging.destination", self.destination.clone())];
            (
                counter!("rockbot.messaging.publish.messages", &labels),
                histogram!("rockbot.messaging.publish.duration", &labels),
            )
        });
        messages.increment(1);
        duration.record(took.as_secs_f64() * 1000.0);
    }
}

/// The meters of the messages that a subscription handles.
#[derive(Debug)]
pub(super) struct ProcessMeters {
    destination: Arc<str>,
    results: [OnceLock<(Counter, Histogram)>; RESULTS.len()],
    active: OnceLock<Gauge>,
}

const RESULTS: [&str; 4] = ["ack", "retry", "deadletter", "error"];

impl ProcessMeters {
    /// Creates the meters of a subscription's pattern, or of a shared label.
    pub(super) fn new(destination: &str) -> Self {
        Self {
            destination: destination.into(),
            results: Default::default(),
            active: OnceLock::new(),
        }
    }

    /// Records the start of a handler.
    pub(super) fn begin(&self) {
        self.active().increment(1.0);
    }

    /// Records the end of a handler that ran for `took`; `verdict` is `None` if the handler was
    /// cancelled.
    pub(super) fn end(&self, verdict: Option<&Disposition>, took: Duration) {
        self.active().decrement(1.0);
        let result = match verdict {
            Some(Disposition::Ack) => 0,
            Some(Disposition::Retry { .. }) => 1,
            Some(Disposition::DeadLetter { .. }) => 2,
            None => 3,
        };
        let (messages, duration) = self.results[result].get_or_init(|| {
            let result = RESULTS[result].into();
            let labels = [
                ("messaging.destination", self.destination.clone()),
                ("messaging.result", result),
            ];
            (
                counter!("rockbot.messaging.process.messages", &labels),
                histogram!("rockbot.messaging.process.duration", &labels),
            )
        });
        messages.increment(1);
        duration.record(took.as_secs_f64() * 1000.0);
    }

    fn active(&self) -> &Gauge {
        self.active.get_or_init(|| gauge!("rockbot.messaging.active_messages"))
    }
}
