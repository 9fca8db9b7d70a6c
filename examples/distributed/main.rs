//! An agent, its tool and its user, each in a process of its own, connected by RabbitMQ.
//!
//! `cargo run --example distributed --features rabbitmq -- --bus amqp://127.0.0.1 --ask "What is 6 * 7?"` starts the
//! worker and the agent as further processes, prints the answer, and ends them. Without `--bus` all three parts run in
//! this process. No key is needed.

mod arguments;
#[path = "../chat/calculator.rs"]
mod calculator;
mod network;
mod processes;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use arguments::{Arguments, HELP, Part};
use network::Network;
use processes::Processes;
use rockbot::message::RequestClient;
use rockbot::prelude::*;
use rockbot::tool::{RemoteToolExecutor, remote_tool};

/// Time that running work has when a part ends.
const DRAIN: Duration = Duration::from_secs(5);

/// Time that the user waits for the answer.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match Arguments::parse(std::env::args().skip(1)) {
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
        Some(url) => (Some(Processes::start(url, network.name()).await?), Vec::new()),
        None => {
            let hosts = vec![worker(network.bus())?, agent(network.bus())?];
            for host in &hosts {
                host.start().await?;
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
    host.start().await?;
    print(processes::READY)?;
    processes::until_told_to_end().await;
    host.shutdown(DRAIN).await;
    network.close().await
}

/// Builds the worker: a host without users, whose tool is called over the bus.
fn worker(bus: Arc<dyn Bus>) -> Result<AgentHost, BoxError> {
    let host = AgentHost::builder("worker")
        .chat(ChatTiers::from_env_or_offline()?)
        .shared_bus(bus)
        .tool(calculator::calculator())
        .serve_tools()
        .build()?;
    Ok(host)
}

/// Builds the agent, which knows the tool's description and calls the worker for its result.
fn agent(bus: Arc<dyn Bus>) -> Result<AgentHost, BoxError> {
    let client = Arc::new(RequestClient::new(bus.clone(), "agent"));
    let registration = calculator::calculator().registration;
    let host = AgentHost::builder("agent")
        .chat(ChatTiers::from_env_or_offline()?)
        .shared_bus(bus)
        .tool(remote_tool(registration, RemoteToolExecutor::new(client)))
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
