//! `rockbot mcp`: lists MCP servers, calls a tool, serves the agent's tools, or is a bridge to
//! servers.

use clap::Subcommand;
use rockbot::implement::tool::ToolInvokeRequest;
use rockbot::prelude::*;

use crate::agent::Setup;
use crate::arguments::Probes;
use crate::chat::terminal::{self, Terminal, clean};
use crate::chat::{look, mcp, questions, shut_down};
use crate::commands::serve;
use crate::host::stop_signals::StopSignals;

/// A command about MCP.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the MCP servers of the settings, and how they are
    List,
    /// Call a tool of the agent, of an MCP server or another one, and print its result; with a failed
    /// call the exit code is 1
    Call {
        /// The tool, as `rockbot tools` lists it
        tool: String,
        /// The arguments, as a JSON object
        #[arg(default_value = "{}")]
        arguments: String,
    },
    /// Serve the agent's tools to the MCP client that starts this program, over standard input and
    /// output; McpServer.Tools chooses some
    #[cfg(feature = "mcp-server")]
    Serve,
    /// Connect to the MCP servers of the settings, and serve them to agents on the broker until Ctrl-C
    /// or SIGTERM; `rockbot --mcp-bus URL` is such an agent
    Bridge {
        /// Let agents have servers at this host connected; more than once if need be
        #[arg(long, value_name = "HOST")]
        allow: Vec<String>,
        #[command(flatten)]
        probes: Probes,
    },
}

/// Carries out a command. Returns `false` if a call failed.
pub(crate) async fn run(setup: &Setup<'_>, command: &Command) -> Result<bool, BoxError> {
    #[cfg(feature = "mcp-server")]
    if matches!(command, Command::Serve) {
        serve_client(setup).await?;
        return Ok(true);
    }
    if let Command::Bridge { allow, probes } = command {
        let stop = StopSignals::install()?;
        serve::serve(setup.open_bridge(allow).await?, probes.address(), stop).await?;
        return Ok(true);
    }
    let (asking, mut asked) = questions();
    let host = setup.open(asking).await?;
    host.start().await?;
    let has_bridges = setup.options.mcp_bus.is_some();
    mcp::connected(&host, &mut Terminal::new(true, None), &mut asked, has_bridges).await;
    let ended = match command {
        Command::Call { tool, arguments } => call(&host, tool, arguments).await,
        _ => {
            terminal::print(&format!("{}\n", look::servers(&host)));
            Ok(true)
        }
    };
    shut_down(&host).await;
    ended
}

/// Calls a tool as the person at the terminal, who needs no approval.
async fn call(host: &AgentHost, tool: &str, arguments: &str) -> Result<bool, BoxError> {
    let tools = host.tools().snapshot();
    let Some(entry) = tools.find(tool) else {
        return Err(format!("there is no tool `{tool}`; `rockbot tools` lists them").into());
    };
    entry
        .arguments()
        .check(arguments)
        .map_err(|error| format!("the arguments do not fit `{tool}`:\n{error}"))?;
    let request = ToolInvokeRequest::new("call_1", tool, arguments);
    let cx = CallContext::new("terminal").with_principal(host.agent().principal().clone());
    let response = entry.executor().execute(request, &cx).await?;
    terminal::print(&format!("{}\n", clean(&response.content.words())));
    Ok(!response.is_error)
}

/// Serves the agent's tools until the client is gone.
#[cfg(feature = "mcp-server")]
async fn serve_client(setup: &Setup<'_>) -> Result<(), BoxError> {
    let mut stop = StopSignals::install()?;
    let host = setup.open_for_client().await?;
    host.start().await?;
    let endpoint = host.parts().require::<rockbot::mcp::McpEndpoint>()?;
    tokio::select! {
        () = endpoint.closed() => {}
        () = stop.next() => {}
    }
    shut_down(&host).await;
    Ok(())
}
