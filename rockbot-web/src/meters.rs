//! The metrics of the server, in the facade `metrics`.

use std::time::Duration;

use axum::http::StatusCode;
use metrics::{Gauge, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

const REQUESTS: &str = "rockbot.http.requests";
const DURATION: &str = "rockbot.http.request.duration";
const STREAMS: &str = "rockbot.http.streams";

/// Registers the descriptions with the program's recorder, if it has one.
pub(crate) fn describe() {
    describe_counter!(REQUESTS, Unit::Count, "requests over HTTP that were answered");
    describe_histogram!(
        DURATION,
        Unit::Milliseconds,
        "time from a request over HTTP to the head of its answer"
    );
    describe_gauge!(STREAMS, Unit::Count, "answers that clients read as events now");
}

/// Counts a request by the route that it matched: an address itself would be a label without bounds.
pub(crate) fn answered(route: &str, status: StatusCode, took: Duration) {
    let labels = [("route", route.to_owned()), ("status", status.as_str().to_owned())];
    counter!(REQUESTS, &labels).increment(1);
    histogram!(DURATION, &labels).record(took.as_secs_f64() * 1000.0);
}

/// An open stream of events, which is counted until it is dropped.
pub(crate) struct OpenStream(Gauge);

impl OpenStream {
    pub(crate) fn new() -> Self {
        let open = gauge!(STREAMS);
        open.increment(1);
        Self(open)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}
