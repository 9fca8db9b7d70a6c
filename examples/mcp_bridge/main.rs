//! MCP servers for agents on a bus: one process is connected to the servers, and any number of
//! agents have their tools.
//!
//! `cargo run --example mcp_bridge --features mcp-server`: a server, the bridge to it and an
//! agent in this process; no key is needed. With `--features mcp-server,rabbitmq` and `-- --bus
//! amqp://127.0.0.1 --mcp mcp.json` it serves agents in other processes until Ctrl-C.

mod agent;
mod arguments;
#[path = "../mcp_server/notes.rs"]
mod notes;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use arguments::{Arguments, HELP};
use rockbot::agent::AgentHostBuilder;
use rockbot::config::{Config, HostSettings};
use rockbot::mcp::{McpBridge, McpEndpoint, McpServer, McpServerState, McpServers, McpToolServer, McpTools};
use rockbot::prelude::*;
use rockbot_cli::host::{broker, log, words};

/// Time that running calls have when a host ends.
const DRAIN: Duration = Duration::from_secs(5);

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
    let config = Config::load(arguments.config.as_deref())?;
    let broker = broker::open(arguments.bus.as_deref(), &config, false).await?;
    let bus = broker.clone().unwrap_or_else(|| Arc::new(InProcessBus::new()));
    let (servers, notes) = servers(&arguments, &config).await?;
    let bridge = AgentHost::builder(&arguments.name)
        .settings(&HostSettings::read(&config, &arguments.data)?)
        .data_dir(&arguments.data)
        .shared_bus(bus.clone())
        .add(servers)
        .add(McpBridge::new().allow_registration(arguments.allowed))
        .build()?;
    bridge.start().await?;
    report(&bridge).await?;
    match broker {
        Some(_) => tokio::signal::ctrl_c().await?,
        None => agent::ask(bus.clone(), &bridge, arguments.question).await?,
    }
    bridge.shutdown(DRAIN).await;
    if let Some(notes) = notes {
        notes.shutdown(DRAIN).await;
    }
    let _ = bus.close(DRAIN).await;
    Ok(())
}

/// Returns the servers of the file or of the settings; else notes, with the host in this process
/// that serves them.
async fn servers(arguments: &Arguments, config: &Config) -> Result<(McpTools, Option<AgentHost>), BoxError> {
    if let Some(file) = &arguments.mcp {
        return Ok((McpTools::from_file(file), None));
    }
    let settings = config.section("Mcp")?;
    if settings.setting("ConfigPath").is_some() || settings.setting("Servers").is_some() {
        return Ok((McpTools::default(), None));
    }
    let server = McpToolServer::new().tools(["*"]).listen("127.0.0.1:0".parse()?);
    let host = notes::tools()
        .into_iter()
        .fold(AgentHost::builder("notes"), AgentHostBuilder::tool)
        .add(server)
        .build()?;
    host.start().await?;
    let address = host
        .parts()
        .require::<McpEndpoint>()?
        .address()
        .ok_or("the notes have no address")?;
    let server = McpServer::http("notes", &format!("http://{address}/mcp"))?;
    Ok((McpTools::default().server(server), Some(host)))
}

/// Waits until the bridge is connected to its servers, and prints what it serves.
async fn report(bridge: &AgentHost) -> Result<(), BoxError> {
    let servers = bridge.parts().require::<McpServers>()?;
    servers.settled().await;
    for server in servers.list() {
        match server.state {
            McpServerState::Failed(reason) => eprintln!("MCP server `{}` is not connected: {reason}", server.name),
            _ => print(&format!("serving `{}`: {}", server.name, server.tools.join(", ")))?,
        }
    }
    Ok(())
}

/// Prints a line.
fn print(line: &str) -> Result<(), BoxError> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
