//! An agent, its tool and its user, each in a process of its own, connected by RabbitMQ or Pulsar.
//!
//! `cargo run --example distributed --features rabbitmq -- --bus amqp://127.0.0.1 --ask "What is
//! 6 * 7?"` starts the worker and the agent as further processes, prints the answer, and ends
//! them; `--features pulsar` and `--bus pulsar://127.0.0.1` do so over Pulsar. Without `--bus`
//! all three parts run in this process. No key is needed. The agent knows nothing of the tool:
//! the worker announces it, and a further worker (`--part worker --network NAME`) adds its tools
//! to the running agent, or shares the calls of the first.

mod arguments;
mod network;
mod processes;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use arguments::{Arguments, HELP, Part};
use network::Network;
use processes::Processes;
use rockbot::prelude::*;
use rockbot::tool::RemoteTools;
use rockbot_cli::host::{broker, calculator, log, words};

/// Time that running work has when a part ends.
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
    match arguments.part {
        Part::User => print(&ask(&arguments).await?),
        Part::Worker => serve(&arguments, worker).await,
        Part::Agent => serve(&arguments, agent).await,
    }
}

/// Starts the two other parts, asks the question as a user's program does, and ends them.
async fn ask(arguments: &Arguments) -> Result<String, BoxError> {
    let network = Network::open(arguments).await?;
    let (processes, hosts) = match &arguments.bus {
        Some(url) => (
            Some(Processes::start(&["worker", "agent"], url, network.name()).await?),
            Vec::new(),
        ),
        None => {
            let hosts = vec![worker(network.bus())?, agent(network.bus())?];
            for host in &hosts {
                start(host).await?;
            }
            (None, hosts)
        }
    };
    let user = UserProxy::new(network.bus(), "user").with_time_limit(PATIENCE);
    let reply = user.send("my-session", arguments.question.as_str()).await;
    for host in &hosts {
        host.shutdown(DRAIN).await;
    }
    if let Some(processes) = processes {
        processes.end().await?;
    }
    network.close().await?;
    Ok(reply?.content.words().into_owned())
}

/// Runs one part until its standard input ends, as it does when the process that started it ends.
async fn serve(arguments: &Arguments, part: fn(Arc<dyn Bus>) -> Result<AgentHost, BoxError>) -> Result<(), BoxError> {
    let network = Network::open(arguments).await?;
    let host = part(network.bus())?;
    start(&host).await?;
    print(processes::READY)?;
    processes::until_told_to_end().await;
    host.shutdown(DRAIN).await;
    network.close().await
}

/// Starts a part, and waits until it is ready: the agent, until the worker has announced its tool.
async fn start(host: &AgentHost) -> Result<(), BoxError> {
    host.start().await?;
    let ready = async {
        while host.readiness().is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, ready).await;
    waited.map_err(|_| {
        host.readiness()
            .err()
            .map_or_else(|| "not ready in time".into(), BoxError::from)
    })
}

/// Builds the worker: a host without users, whose tool is called over the bus.
fn worker(bus: Arc<dyn Bus>) -> Result<AgentHost, BoxError> {
    let host = AgentHost::builder("worker")
        .chat(ChatTiers::from_env_or_offline()?)
        .shared_bus(bus)
        .tool(calculator::calculator())
        .announce_tools()
        .build()?;
    Ok(host)
}

/// Builds the agent, which has the tools that workers announce, and waits for those of `worker`.
fn agent(bus: Arc<dyn Bus>) -> Result<AgentHost, BoxError> {
    let host = AgentHost::builder("agent")
        .chat(ChatTiers::from_env_or_offline()?)
        .shared_bus(bus)
        .add(RemoteTools::new().expect("worker"))
        .serve_users()
        .build()?;
    Ok(host)
}

/// Prints a line, and fails if it cannot be written.
fn print(line: &str) -> Result<(), BoxError> {
    let mut out = io::stdout();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.map_err(|error| format!("cannot print: {error}").into())
}
