//! The program: serves until its client closes standard input, or until Ctrl-C.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use rockbot_core::BoxError;
use rockbot_core::config::Config;
use rockbot_mcp::McpEndpoint;

const HELP: &str = "\
An MCP server with read-only tools about an OpenRouter account.

    rockbot-openrouter-mcp [--config FILE]

It serves the client that started it, over standard input and output, or at the address in McpServer.Address. Settings come from
the file, .json or .toml, and from the environment, which goes before it:

    ROCKBOT_OPENROUTER__APIKEY          the key whose account is shown
    ROCKBOT_OPENROUTER__MANAGEMENTKEY   the management key, for credits and keys (default: the key above)
    ROCKBOT_MCPSERVER__ADDRESS          serve at http://ADDRESS/mcp, such as 127.0.0.1:8932
    ROCKBOT_MCPSERVER__TOKEN            the bearer token that clients over HTTP must send";

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A program that cannot say what is wrong still fails.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), BoxError> {
    // The system gives any bytes; `std::env::args` panics where they are no text.
    let mut words = std::env::args_os().skip(1);
    let option = words.next().map(|word| word.to_string_lossy().into_owned());
    let file: Option<PathBuf> = match (option.as_deref(), words.next()) {
        (None, _) => None,
        (Some("--help" | "-h"), _) => return Ok(writeln!(std::io::stdout(), "{HELP}")?),
        (Some("--config"), Some(file)) => Some(file.into()),
        (Some("--config"), None) => return Err("`--config` needs a file; see --help".into()),
        (Some(other), _) => return Err(format!("there is no argument `{other}`; see --help").into()),
    };
    let host = rockbot_openrouter_mcp::host(&Config::load(file.as_deref())?)?;
    host.start().await?;
    let endpoint = host.parts().require::<McpEndpoint>()?;
    if let Some(address) = endpoint.address() {
        writeln!(std::io::stdout(), "serving at http://{address}/mcp")?;
    }
    tokio::select! {
        () = endpoint.closed() => {}
        stopped = tokio::signal::ctrl_c() => stopped?,
    }
    host.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
