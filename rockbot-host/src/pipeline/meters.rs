//! Counting and timing messages under the original's metric names.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics::{Histogram, histogram};
use rockbot_core::messaging::Disposition;

/// The meters of one message type, one for each result.
#[derive(Debug)]
pub(super) struct Meters {
    message_type: Arc<str>,
    results: [OnceLock<Histogram>; RESULTS.len()],
}

const RESULTS: [&str; 3] = ["ack", "retry", "deadletter"];

impl Meters {
    pub(super) fn new(message_type: Arc<str>) -> Self {
        Self {
            message_type,
            results: Default::default(),
        }
    }

    /// Counts one message that ended so after `duration`.
    pub(super) fn record(&self, verdict: &Disposition, duration: Duration) {
        let result = match verdict {
            Disposition::Ack => 0,
            Disposition::Retry { .. } => 1,
            Disposition::DeadLetter { .. } => 2,
        };
        let histogram = self.results[result].get_or_init(|| {
            histogram!(
                "rockbot.pipeline.dispatch.duration",
                "rockbot.message_type" => self.message_type.clone(),
                "rockbot.result" => RESULTS[result],
            )
        });
        histogram.record(duration.as_secs_f64() * 1000.0);
    }
}
