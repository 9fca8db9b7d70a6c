//! Metrics of tool calls, under the metric names of the original RockBot.

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{Counter, Histogram, counter, histogram};
use rockbot_core::tool::{ToolErrorCode, ToolInvokeResponse};

/// The meters of one tool: a pair for each status, created when it is first used.
#[derive(Debug)]
pub(super) struct Meters {
    name: String,
    statuses: [OnceLock<Pair>; STATUSES.len()],
}

#[derive(Debug)]
struct Pair {
    calls: Counter,
    duration: Histogram,
}

const STATUSES: [&str; 4] = ["success", "error", "timeout", "cancelled"];

impl Meters {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            statuses: Default::default(),
        }
    }

    /// Records one call that blocked its thread. The counter is created here, since hardly any tool
    /// needs one.
    pub(super) fn record_blocking(&self) {
        counter!("rockbot.tool.blocked", "tool_name" => self.name.clone()).increment(1);
    }

    /// Records one call that ended with `response` after `duration`.
    pub(super) fn record(&self, response: &ToolInvokeResponse, duration: Duration) {
        let status = match response.code {
            Some(ToolErrorCode::Timeout | ToolErrorCode::OutcomeUnknown) => 2,
            Some(ToolErrorCode::Cancelled) => 3,
            _ => usize::from(response.is_error),
        };
        let pair = self.statuses[status].get_or_init(|| self.pair(STATUSES[status]));
        pair.calls.increment(1);
        pair.duration.record(duration.as_secs_f64() * 1000.0);
    }

    fn pair(&self, status: &'static str) -> Pair {
        let name = self.name.clone();
        Pair {
            calls: counter!("rockbot.tool.invocations", "tool_name" => name.clone(), "status" => status),
            duration: histogram!("rockbot.tool.invoke.duration", "tool_name" => name, "status" => status),
        }
    }
}
