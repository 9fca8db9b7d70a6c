//! Metrics of turns, under the metric names of the original RockBot.

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{Counter, Histogram, counter, histogram};
use rockbot_core::turn::{TurnOutcome, TurnStatus};

/// The meters of a host's turns, created when they are first used.
#[derive(Debug, Default)]
pub(super) struct TurnMeters {
    statuses: [OnceLock<(Counter, Histogram)>; STATUSES.len()],
    spent: OnceLock<Spent>,
}

/// The histograms of a turn's spending.
#[derive(Debug)]
struct Spent {
    input: Histogram,
    output: Histogram,
    cached: Histogram,
    tools: Histogram,
}

const STATUSES: [&str; 7] = [
    "answered",
    "partial",
    "joined",
    "superseded",
    "cancelled",
    "failed",
    "refused",
];

impl TurnMeters {
    /// Records a turn that ended with `outcome` after it had worked for `worked`.
    pub(super) fn record(&self, outcome: &TurnOutcome, worked: Duration) {
        let status = number_of(&outcome.status);
        let (turns, duration) = self.statuses[status].get_or_init(|| {
            let status = STATUSES[status];
            (
                counter!("rockbot.agent.turns", "status" => status),
                histogram!("rockbot.agent.turn.duration", "status" => status),
            )
        });
        turns.increment(1);
        duration.record(worked.as_secs_f64() * 1000.0);
        if outcome.model_calls > 0 {
            let spent = self.spent.get_or_init(Spent::new);
            spent.input.record(outcome.usage.input as f64);
            spent.output.record(outcome.usage.output as f64);
            spent.cached.record(outcome.usage.cached as f64);
            spent.tools.record(outcome.calls.len() as f64);
        }
    }
}

/// Returns the label of a status.
pub(super) fn name_of(status: &TurnStatus) -> &'static str {
    STATUSES[number_of(status)]
}

fn number_of(status: &TurnStatus) -> usize {
    match status {
        TurnStatus::Answered => 0,
        TurnStatus::Partial(_) => 1,
        TurnStatus::Joined(_) => 2,
        TurnStatus::Superseded => 3,
        TurnStatus::Cancelled => 4,
        TurnStatus::Refused => 6,
        _ => 5,
    }
}

impl Spent {
    fn new() -> Self {
        Self {
            input: histogram!("rockbot.agent.turn.tokens.input"),
            output: histogram!("rockbot.agent.turn.tokens.output"),
            cached: histogram!("rockbot.agent.turn.tokens.cached"),
            tools: histogram!("rockbot.agent.turn.tools"),
        }
    }
}
