//! Measures which policies pay for a model: tasks with checkable outcomes, run with each policy
//! of a host on and off.
//!
//! `cargo run --release --example evaluate -- --limit 2`; the README says how to point it at a
//! real model. Without one the built-in offline model is evaluated, whose figures say nothing
//! about an LLM.

pub(crate) mod arguments;
#[allow(clippy::duplicate_mod, reason = "the tests load this example beside `chat`")]
pub(crate) mod documents;
pub(crate) mod facts;
pub(crate) mod meter;
pub(crate) mod policies;
pub(crate) mod report;
pub(crate) mod task;
pub(crate) mod tasks;
pub(crate) mod trial;
pub(crate) mod world;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use arguments::{Arguments, HELP};
use policies::POLICIES;
use report::Row;
use rockbot::chat::{ChatCall, ChatMessage, ModelSettings};
use rockbot::prelude::*;
use rockbot_cli::host::{calculator, words};
use task::Task;

#[tokio::main]
async fn main() -> ExitCode {
    let ran = match words::words().and_then(Arguments::parse) {
        Ok(arguments) => run(&arguments).await,
        Err(problem) => Err(problem.into()),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed standard error is no reason to fail.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<(), BoxError> {
    let mut out = io::stdout();
    if arguments.help {
        return Ok(writeln!(out, "{HELP}")?);
    }
    if arguments.list {
        return Ok(list(&mut out, arguments)?);
    }
    let model: Arc<dyn ChatClient> = Arc::new(ChatTiers::from_env_or_offline()?);
    let name = greet(&model).await?;
    let tasks = arguments.tasks();
    let configurations = arguments.configurations(has_tiers(&model));
    let mut rows = Vec::new();
    for configuration in &configurations {
        let mut trials = Vec::new();
        for turns in conversations(&tasks) {
            let run = trial::run(
                turns,
                configuration,
                model.clone(),
                arguments.sampling,
                arguments.limits,
            )
            .await?;
            for (task, trial) in turns.iter().zip(run) {
                tell(&configuration.name, &task.id, &trial.verdict);
                trials.push((task, trial));
            }
        }
        let configuration = &configuration.name;
        rows.push(Row { configuration, trials });
    }
    if arguments.json {
        writeln!(out, "{}", report::json(&name, &rows))?
    } else {
        writeln!(out, "model: {name}\n\n{}", report::table(&rows))?
    }
    Ok(())
}

/// Returns the requests of each conversation; a request that is its own is one.
pub(crate) fn conversations(tasks: &[Task]) -> impl Iterator<Item = &[Task]> {
    tasks.chunk_by(|task, next| task.name() == next.name())
}

fn list(out: &mut impl Write, arguments: &Arguments) -> io::Result<()> {
    for policy in &POLICIES {
        writeln!(out, "policy {}: {}", policy.name, policy.about)?;
    }
    for task in arguments.tasks() {
        writeln!(out, "{} {}: {}", task.kind.name(), task.id, task.asks)?;
    }
    Ok(())
}

/// Asks the model once and returns its name.
///
/// A model that cannot be reached is reported before all tasks fail, and the first task is not
/// charged for loading the model.
async fn greet(model: &Arc<dyn ChatClient>) -> Result<String, BoxError> {
    let request = ChatRequest::new([ChatMessage::user("Say hello.")])
        .with_settings(ModelSettings::new().with_max_output_tokens(16));
    let call = ChatCall::new(request, CallContext::new("evaluate"));
    let answer = model.chat(call).await?;
    Ok(match answer.model.as_deref() {
        Some("offline") => "offline, which is not an LLM: its figures say nothing about one".to_owned(),
        name => name.unwrap_or("unnamed").to_owned(),
    })
}

/// Returns `true` if the tiers have different models.
fn has_tiers(model: &Arc<dyn ChatClient>) -> bool {
    let balanced = model.describe(ModelTier::Balanced).model;
    ModelTier::ALL
        .iter()
        .any(|tier| model.describe(*tier).model != balanced)
}

fn tell(configuration: &str, task: &str, verdict: &Result<(), String>) {
    let verdict = verdict.as_ref().err().map_or("solved", String::as_str);
    // A closed standard error is no reason to fail.
    let _ = writeln!(io::stderr(), "{configuration} {task}: {verdict}");
}
