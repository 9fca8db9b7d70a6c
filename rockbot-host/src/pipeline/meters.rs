//! Metrics of message dispatch.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics::{Histogram, histogram};
use rockbot_core::messaging::Disposition;

/// The duration histograms of one message type, one for each result.
#[derive(Debug)]
pub(super) struct DispatchMeters {
    message_type: Arc<str>,
    /// Registered at the first use, so that results that never occur have no series.
    results: [OnceLock<Histogram>; RESULTS.len()],
}

const RESULTS: [&str; 3] = ["ack", "retry", "deadletter"];

impl DispatchMeters {
    /// Creates the meters of `message_type`.
    pub(super) fn new(message_type: Arc<str>) -> Self {
        Self {
            message_type,
            results: Default::default(),
        }
    }

    /// Records a message that ended with `verdict` after `duration`.
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
