//! `rockbot tools`: lists the tools of the agent.

use rockbot::BoxError;

use crate::agent::Setup;
use crate::chat::terminal::{self, Terminal};
use crate::chat::{mcp, questions, shut_down};

/// Starts the agent, waits for its MCP servers, and prints a line for each of its tools.
pub(crate) async fn list(setup: &Setup<'_>) -> Result<(), BoxError> {
    let (asking, mut asked) = questions();
    let host = setup.open(asking).await?;
    host.start().await?;
    let has_bridges = setup.options.mcp_bus.is_some();
    mcp::connected(&host, &mut Terminal::new(true, None), &mut asked, has_bridges).await;
    terminal::list_tools(&host);
    shut_down(&host).await;
    Ok(())
}
