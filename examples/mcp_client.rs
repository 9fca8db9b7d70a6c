//! Tools of an MCP server: a process that the agent starts, connects to and starts again.
//!
//! `cargo run --example mcp_client --features mcp-server`: no key needed. The server is this
//! program itself, started with the word `serve`; in its place stands any server, such as
//! `McpServer::process("time", "uvx").args(["mcp-server-time"])`.

use std::io::{Write, stdout};
use std::time::Duration;

use rockbot::mcp::{McpEndpoint, McpServer, McpToolServer, McpTools};
use rockbot::prelude::*;

/// Tells how many of a product are left.
#[derive(Deserialize, JsonSchema)]
struct Stock {
    /// The product, such as chairs.
    product: String,
}

/// Serves the tools of a shop to the client that started this process.
async fn serve() -> Result<(), BoxError> {
    let stock = tool("stock", |Stock { product }: Stock| async move {
        format!("There are 3 {product} left.")
    });
    let server = McpToolServer::new().stdio().tools(["*"]);
    let host = AgentHost::in_memory().tool(stock.pure()).add(server).build()?;
    host.start().await?;
    host.parts().require::<McpEndpoint>()?.closed().await;
    host.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return serve().await;
    }
    let program = std::env::current_exe()?.display().to_string();
    let shop = McpServer::process("shop", program).args(["serve"]);
    let host = AgentHost::in_memory()
        .chat(ChatTiers::from_env_or_offline()?)
        .add(McpTools::default().server(shop))
        .build()?;
    host.start().await?;
    let text = "Ask the stock of the shop: product \"chairs\"";
    writeln!(stdout(), "> {text}\n{}", host.agent().ask("session", text).await?)?;
    host.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
