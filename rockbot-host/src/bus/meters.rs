//! Counting and timing what goes over the bus under the original's metric names.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use rockbot_core::messaging::Disposition;

/// What stands for topics of one conversation, such as those of replies: there is no end of them.
pub(super) const TEMPORARY: &str = "_temporary";

/// What stands for topics that nobody subscribes to.
pub(super) const NOBODY: &str = "_nobody";

/// The meters of what is published under a topic.
#[derive(Debug)]
pub(super) struct PublishMeters {
    destination: Arc<str>,
    meters: OnceLock<(Counter, Histogram)>,
}

impl PublishMeters {
    pub(super) fn new(destination: &str) -> Self {
        Self {
            destination: destination.into(),
            meters: OnceLock::new(),
        }
    }

    /// Counts a message that was taken after `took`.
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

/// The meters of what a subscription handles.
#[derive(Debug)]
pub(super) struct ProcessMeters {
    destination: Arc<str>,
    results: [OnceLock<(Counter, Histogram)>; RESULTS.len()],
    active: OnceLock<Gauge>,
}

const RESULTS: [&str; 4] = ["ack", "retry", "deadletter", "error"];

impl ProcessMeters {
    pub(super) fn new(destination: &str) -> Self {
        Self {
            destination: destination.into(),
            results: Default::default(),
            active: OnceLock::new(),
        }
    }

    /// A message is handled from now on.
    pub(super) fn begin(&self) {
        self.active().increment(1.0);
    }

    /// Counts a message that was handled so, or given up when its handler was cancelled, after `took`.
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
