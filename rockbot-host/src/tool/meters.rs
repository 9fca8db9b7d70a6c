//! Counting and timing tool calls under the seed's metric names.

use std::collections::HashMap;
use std::time::Duration;

use metrics::{Counter, Histogram, counter, histogram};
use rockbot_core::ToolName;
use rockbot_core::tool::{ToolErrorCode, ToolInvokeResponse};
use std::sync::{Mutex, OnceLock, PoisonError};

/// How many tools have series of their own; the calls of further ones are counted together, as `_other`. Names
/// come from outside, and a metrics store must not grow with them.
const MAX_SERIES: usize = 512;

/// The meters of one tool, one pair for each status.
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
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            statuses: Default::default(),
        }
    }

    /// Counts one call that ended with `response` after `duration`.
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

/// The meters of all tools of a host, kept over changes of the registry.
#[derive(Debug, Default)]
pub(super) struct MeterBook(Mutex<HashMap<ToolName, std::sync::Arc<Meters>>>);

impl MeterBook {
    /// The meters of `tool`.
    pub(super) fn of(&self, tool: &ToolName) -> std::sync::Arc<Meters> {
        // No code that can panic runs under the lock.
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(meters) = book.get(tool) {
            return meters.clone();
        }
        let key = if book.len() < MAX_SERIES {
            tool.clone()
        } else {
            ToolName::from("_other")
        };
        let new = || std::sync::Arc::new(Meters::new(key.as_str()));
        book.entry(key.clone()).or_insert_with(new).clone()
    }
}
