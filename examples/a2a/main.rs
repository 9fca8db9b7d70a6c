//! An agent that hands a task to another agent, each in a process of its own, connected by
//! RabbitMQ or Pulsar.
//!
//! `cargo run --example a2a --features a2a,rabbitmq -- --bus amqp://127.0.0.1` starts the
//! mathematician as a further process, asks the assistant, prints what it says, and ends both.
//! Without `--bus` both run in this process. No key is needed: the assistant's words are
//! rehearsed, and the mathematician has the offline model and a calculator.

mod arguments;
#[path = "../distributed/network.rs"]
mod network;
#[path = "../distributed/processes.rs"]
mod processes;
mod rehearsed;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use arguments::{Arguments, HELP};
use network::Network;
use processes::Processes;
use rehearsed::Rehearsed;
use rockbot::prelude::*;
use rockbot::service::{AgentDirectory, AgentSkill};
use rockbot::tools::a2a::{A2aCaller, A2aReceiver};
use rockbot_cli::host::{broker, calculator, log, words};
use tokio::time::{sleep, timeout};

/// Time that running work has when an agent ends.
const DRAIN: Duration = Duration::from_secs(5);

/// Time that the user waits for the answer.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match words::words().and_then(Arguments::parse) {
        Ok(arguments) if arguments.help => print(HELP),
        Ok(arguments) => run(arguments).await,
        Err(problem) => Err(problem.into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<(), BoxError> {
    log::install()?;
    let network = Network::open(&arguments).await?;
    if arguments.is_mathematician {
        let host = mathematician(network.bus())?;
        host.start().await?;
        print(processes::READY)?;
        processes::until_told_to_end().await;
        host.shutdown(DRAIN).await;
        return network.close().await;
    }
    let (processes, other) = match &arguments.bus {
        Some(url) => (
            Some(Processes::start(&["mathematician"], url, network.name()).await?),
            None,
        ),
        None => (None, Some(mathematician(network.bus())?)),
    };
    if let Some(other) = &other {
        other.start().await?;
    }
    let host = assistant(network.bus())?;
    let asked = ask(&host, &arguments.question).await;
    host.shutdown(DRAIN).await;
    if let Some(other) = other {
        other.shutdown(DRAIN).await;
    }
    if let Some(processes) = processes {
        processes.end().await?;
    }
    network.close().await?;
    asked
}

/// Asks the assistant, and prints what it says until the answer of the mathematician is told.
async fn ask(host: &AgentHost, question: &str) -> Result<(), BoxError> {
    host.start().await?;
    // The mathematician announces itself when it is asked to, soon after the start.
    let agents: Arc<dyn AgentDirectory> = host.parts().require()?;
    let known = async {
        while agents.agents().is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, known).await.map_err(|_| "no agent is known")?;
    print(&format!("> {question}"))?;
    let agent = host.agent();
    let mut announcements = agent.announcements();
    let mut said = agent.ask("main", question).await?.text;
    print(&said)?;
    // An answer that comes at once joins the turn that asked; a later one has a turn of its own.
    while !said.starts_with(rehearsed::TOLD) {
        let next = timeout(PATIENCE, announcements.next()).await;
        let next = next.map_err(|_| "no answer came")?.ok_or("the assistant has ended")?;
        said = next.content.words().into_owned();
        print(&said)?;
    }
    Ok(())
}

/// Builds the agent that is asked: its skill, and who may ask it.
fn mathematician(bus: Arc<dyn Bus>) -> Result<AgentHost, BoxError> {
    let skill = AgentSkill::new("calculate").with_description("Computes the result of an arithmetic expression.");
    let receiver = A2aReceiver::new()
        .with_description("Computes.")
        .with_skill(skill)
        .allow("assistant:calculate");
    let host = AgentHost::builder("mathematician")
        .chat(ChatTiers::from_env_or_offline()?)
        .shared_bus(bus)
        .tool(calculator::calculator())
        .add(receiver)
        .build()?;
    Ok(host)
}

/// Builds the agent of the user, which hands tasks to other agents.
fn assistant(bus: Arc<dyn Bus>) -> Result<AgentHost, BoxError> {
    let host = AgentHost::builder("assistant")
        .chat(Rehearsed)
        .shared_bus(bus)
        .add(A2aCaller::new())
        .build()?;
    Ok(host)
}

/// Prints a line, and fails if it cannot be written.
fn print(line: &str) -> Result<(), BoxError> {
    let mut out = io::stdout();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.map_err(|error| format!("cannot print: {error}").into())
}
