//! The tools of a host as an MCP server, without a model.
//!
//! `cargo run --example mcp_server --features mcp-server -- --http 127.0.0.1:8931` serves over HTTP; without arguments the
//! program serves the client that started it, over standard input and output.

mod arguments;
mod notes;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use arguments::{Arguments, HELP};
use rockbot::agent::AgentHostBuilder;
use rockbot::mcp::{McpEndpoint, McpToolServer};
use rockbot::prelude::*;
use rockbot_cli::host::{log, words};

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
    let list = arguments.list;
    let host = host(arguments)?;
    if list {
        for entry in host.tools().snapshot().entries() {
            let tool = entry.registration();
            print(&format!("{}: {}", tool.name, tool.description))?;
        }
        return Ok(());
    }
    host.start().await?;
    let endpoint = host.parts().require::<McpEndpoint>()?;
    if let Some(address) = endpoint.address() {
        print(&format!("serving at http://{address}/mcp"))?;
    }
    tokio::select! {
        () = endpoint.closed() => {}
        stopped = tokio::signal::ctrl_c() => stopped?,
    }
    host.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

/// Builds the host: tools, and where they are served. It needs no model, since it answers no
/// messages.
fn host(arguments: Arguments) -> Result<AgentHost, BoxError> {
    let server = McpToolServer::new()
        .tools(arguments.tools)
        .instructions("Notes of this program: search them before you add one.");
    let server = match arguments.http {
        Some(address) => server.listen(address),
        None => server.stdio(),
    };
    let server = match arguments.token {
        Some(token) => server.token(token),
        None => server,
    };
    let host = notes::tools()
        .into_iter()
        .fold(AgentHost::builder("notes"), AgentHostBuilder::tool);
    Ok(host.add(server).build()?)
}

/// Prints a line.
fn print(line: &str) -> Result<(), BoxError> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
