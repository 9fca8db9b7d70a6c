//! Runs one conversation under one configuration: a host of its own, its turns, their calls and
//! their cost.

use std::sync::Arc;
use std::time::Duration;

use rockbot::agent::TurnStream;
use rockbot::memory::Memory;
use rockbot::prelude::*;
use rockbot::tool::ToolLimits;
use rockbot::turn::{Briefing, TurnPolicies, TurnRunner};
use rockbot::{Clock, Timestamp};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::meter::{Bill, Metered, Sampling};
use super::policies::Configuration;
use super::task::{Kind, Seen, SeenCall, Task};
use super::world;

const INSTRUCTIONS: &str = "You are a helpful assistant. Use your tools when they help. Answer briefly.";

/// Pause before another look whether work in the background has ended.
const LOOK: Duration = Duration::from_millis(100);

/// The limits of a trial.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) model_calls: u32,
    pub(crate) time: Duration,
}

/// The result of a task.
#[derive(Debug)]
pub(crate) struct Trial {
    /// The reason why the task was not solved, as an error.
    pub(crate) verdict: Result<(), String>,
    /// `true` when the answer lets its user believe what did not happen.
    pub(crate) is_hollow: bool,
    pub(crate) bill: Bill,
    pub(crate) time: Duration,
}

/// A clock that stands at Tuesday, 10 March 2026, 09:00 UTC, so that every run has the same
/// briefing.
#[derive(Debug)]
struct ThatMorning;

impl Clock for ThatMorning {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_773_133_200_000)
    }
}

/// Runs the requests of a conversation, one after the other.
pub(crate) async fn run(
    turns: &[Task],
    configuration: &Configuration,
    model: Arc<dyn ChatClient>,
    sampling: Sampling,
    limits: Limits,
) -> Result<Vec<Trial>, BoxError> {
    let model = Metered::new(model, sampling);
    let mut trials = Vec::new();
    let Some(first) = turns.first() else {
        return Ok(trials);
    };
    let host = host(first, configuration, &model, limits)?;
    if first.kind == Kind::Parallel {
        // Delegated work needs a host that runs.
        host.start().await?;
    }
    for task in turns {
        let begun = Instant::now();
        let mut seen = Seen::default();
        let turn = host.agent().stream(task.name(), task.asks);
        let work = async {
            watch(turn, &mut seen).await;
            if task.kind == Kind::Parallel {
                await_results(&host, &mut seen).await;
            }
        };
        if timeout(limits.time, work).await.is_err() {
            seen.no_answer = Some(format!("it took longer than {} s", limits.time.as_secs()));
        }
        trials.push(Trial {
            verdict: task.check(&seen),
            is_hollow: task.is_hollow(&seen),
            bill: model.take_bill(),
            time: begun.elapsed(),
        });
    }
    Ok(trials)
}

fn host(task: &Task, configuration: &Configuration, model: &Metered, limits: Limits) -> Result<AgentHost, BoxError> {
    // Delegated parts are paid by the turn that waits for them.
    let parts = if task.kind == Kind::Parallel { 4 } else { 1 };
    let budget = Budget::default().with_max_model_calls(parts * limits.model_calls);
    let builder = AgentHost::in_memory()
        .instructions(INSTRUCTIONS)
        .clock(ThatMorning)
        .chat(model.clone())
        // No person watches a trial, and its tools are its own.
        .policies(TurnPolicies::new().with_tool_limits(ToolLimits::default().with_guards_effects(false)))
        .budget(budget);
    let (builder, tools) = match task.conversation {
        Some(_) => {
            let memory = Memory::none().with_long_term();
            let mut briefing = Briefing::none().with_time_zone("UTC");
            briefing.date_time = true;
            (builder.add(memory).briefing(briefing), world::everyday_tools())
        }
        None => (builder, world::tools(task.fault)),
    };
    let builder = tools.into_iter().fold(builder, |builder, tool| builder.tool(tool));
    Ok(configuration.apply(builder).build()?)
}

/// Records what a turn does.
async fn watch(mut turn: TurnStream, seen: &mut Seen) {
    let mut begun = Vec::new();
    while let Some(progress) = turn.next().await {
        match progress {
            Ok(TurnProgress::ToolStarted { call, arguments, .. }) => begun.push((call, arguments)),
            Ok(TurnProgress::ToolFinished {
                call, tool, is_error, ..
            }) => {
                let arguments = begun.iter().rev().find(|(id, _)| *id == call);
                seen.calls.push(SeenCall {
                    tool: tool.to_string(),
                    arguments: arguments
                        .map_or(Value::Null, |(_, json)| serde_json::from_str(json).unwrap_or_default()),
                    is_error,
                });
            }
            Ok(TurnProgress::Final(outcome)) => end(outcome, seen),
            Ok(_) => {}
            Err(error) => seen.no_answer = Some(error.to_string()),
        }
    }
}

/// Waits for the work that a turn left in the background, and for the turns that tell its results.
/// Their words count as the answer, too.
async fn await_results(host: &AgentHost, seen: &mut Seen) {
    let agent = host.agent();
    let mut announcements = agent.announcements();
    loop {
        tokio::select! {
            biased;
            Some(told) = announcements.next() => {
                seen.text.push('\n');
                seen.text.push_str(&told.content.words());
            }
            () = sleep(LOOK) => {
                if host.parts().require::<dyn TurnRunner>().is_ok_and(|turns| turns.is_idle()) {
                    return;
                }
            }
        }
    }
}

fn end(outcome: TurnOutcome, seen: &mut Seen) {
    if !outcome.is_answer() {
        seen.no_answer = Some(outcome.text.clone());
    }
    seen.text = outcome.text;
}
