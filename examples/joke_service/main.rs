//! A tool service and the agent that uses it: two descriptors and a process make a tool.
//!
//! `cargo run --example joke_service -- --demo` prints a joke that came through the service. With
//! `--features rabbitmq` and `--bus amqp://127.0.0.1`, or `--features pulsar` and `--bus
//! pulsar://127.0.0.1`, the service runs on its own; agents that take in announcements have its
//! tool at once, others after `put-config` of the two descriptors. TrustGraph can be on either
//! side. No key is needed.

mod arguments;
mod jokes;

use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use arguments::{Arguments, HELP};
use jokes::Jokes;
use rockbot::config::Config;
use rockbot::prelude::*;
use rockbot::tool_services::{DescriptorFolder, QueueId, RunningToolService, ToolServiceServer, ToolServices};
use rockbot::{IdSource as _, RandomIds};
use rockbot_cli::host::{log, service_bus, words};
use tokio::io::AsyncReadExt as _;

const SERVICE: &str = include_str!("joke-service.json");
const TOOL: &str = include_str!("tell-joke.json");

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match words::words().and_then(Arguments::parse) {
        Ok(arguments) if arguments.help => print(HELP),
        Ok(arguments) => run(&arguments).await,
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

async fn run(arguments: &Arguments) -> Result<(), BoxError> {
    log::install()?;
    if let Some((folder, key)) = &arguments.put {
        return put(&DescriptorFolder::new(folder), key);
    }
    let bus = service_bus::open(arguments.bus.as_deref(), &Config::new()).await?;
    if arguments.demo {
        let bus = bus.unwrap_or_else(|| Arc::new(InProcessBus::new()));
        return print(&demo(arguments, bus).await?);
    }
    match bus {
        Some(bus) => serve_until_told(arguments, bus).await,
        None => print(&format!(
            "tool-service/joke-service:\n{SERVICE}\ntool/tell-joke:\n{TOOL}"
        )),
    }
}

/// Runs the service: this is all that one takes.
async fn serve(arguments: &Arguments, bus: Arc<dyn Bus>) -> Result<RunningToolService, BoxError> {
    let topic = &arguments.topic;
    let server = ToolServiceServer::described(SERVICE, Jokes)?
        .with_queues(QueueId::request(topic)?, QueueId::response(topic)?)
        .announces(TOOL)?;
    Ok(server.serve(bus).await?)
}

/// Runs the service until Ctrl-C, or until the standard input ends, as it does when the process
/// that started it ends.
async fn serve_until_told(arguments: &Arguments, bus: Arc<dyn Bus>) -> Result<(), BoxError> {
    let running = serve(arguments, Arc::clone(&bus)).await?;
    print("ready")?;
    let mut rest = Vec::new();
    let mut input = tokio::io::stdin();
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        // An input that cannot be read has ended.
        _ = input.read_to_end(&mut rest) => {}
    }
    running.shutdown().await;
    let _ = bus.close(Duration::from_secs(1)).await;
    Ok(())
}

/// Asks an agent for a joke. The agent knows the service by its descriptors alone.
async fn demo(arguments: &Arguments, bus: Arc<dyn Bus>) -> Result<String, BoxError> {
    let folder = std::env::temp_dir().join(format!("joke_service-{}", RandomIds.next_id()));
    let descriptors = DescriptorFolder::new(&folder);
    let topic = &arguments.topic;
    let service = SERVICE.replace("/request/joke", &format!("/request/{topic}"));
    let service = service.replace("/response/joke", &format!("/response/{topic}"));
    descriptors.put("tool-service/joke-service", &service)?;
    descriptors.put("tool/tell-joke", TOOL)?;
    let told = tell(arguments, bus, &folder).await;
    std::fs::remove_dir_all(&folder)?;
    told
}

async fn tell(arguments: &Arguments, bus: Arc<dyn Bus>, folder: &std::path::Path) -> Result<String, BoxError> {
    let running = serve(arguments, Arc::clone(&bus)).await?;
    let host = AgentHost::builder("joker")
        .chat(ChatTiers::from_env_or_offline()?)
        .shared_bus(Arc::clone(&bus))
        .add(ToolServices::new().folder(folder))
        .build()?;
    host.start().await?;
    let question = format!("Tell a joke, topic \"{}\"", arguments.about);
    let answered = host.agent().ask("demo", question).await;
    host.shutdown(Duration::from_secs(5)).await;
    running.shutdown().await;
    let _ = bus.close(Duration::from_secs(1)).await;
    Ok(answered?.to_string())
}

/// Puts the descriptor on the standard input into a folder, and says what is wrong with the
/// folder then.
fn put(folder: &DescriptorFolder, key: &str) -> Result<(), BoxError> {
    let mut json = String::new();
    io::stdin().read_to_string(&mut json)?;
    folder.put(key, &json)?;
    for problem in folder.problems() {
        eprintln!("warning: {problem}");
    }
    print(&format!("{key} is in {}", folder.path().display()))
}

/// Prints a line, and fails if it cannot be written.
fn print(line: &str) -> Result<(), BoxError> {
    let mut out = io::stdout();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.map_err(|error| format!("cannot print: {error}").into())
}
