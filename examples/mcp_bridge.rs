//! MCP servers for agents on a bus: one host is connected to the servers, and any number of agents
//! have their tools.
//!
//! `cargo run --example mcp_bridge --features mcp-server`: no key needed. Between processes each
//! host has the bus of a broker, and `rockbot mcp bridge` is the bridge.

use std::io::{Write, stdout};
use std::sync::Arc;
use std::time::Duration;

use rockbot::mcp::{McpBridge, McpEndpoint, McpExposure, McpServer, McpToolProxy, McpToolServer, McpTools};
use rockbot::prelude::*;

/// Tells how many of a product are left.
#[derive(Deserialize, JsonSchema)]
struct Stock {
    /// The product, such as chairs.
    product: String,
}

/// Starts an MCP server of another program.
async fn shop() -> Result<AgentHost, BoxError> {
    let stock = tool("stock", |Stock { product }: Stock| async move {
        format!("There are 3 {product} left.")
    });
    let server = McpToolServer::new().listen("127.0.0.1:0".parse()?).tools(["*"]);
    let host = AgentHost::in_memory().tool(stock.pure()).add(server).build()?;
    host.start().await?;
    Ok(host)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let shop = shop().await?;
    let endpoint = shop.parts().require::<McpEndpoint>()?;
    let address = endpoint.address().ok_or("the shop has no address")?;
    let server = McpServer::http("shop", &format!("http://{address}/mcp"))?;

    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let bridge = AgentHost::builder("bridge")
        .shared_bus(bus.clone())
        .add(McpTools::default().server(server))
        .add(McpBridge::new())
        .build()?;
    bridge.start().await?;

    // The offline model finds only tools that are in its request.
    let eager = McpTools::default().exposure(McpExposure::Eager);
    let agent = AgentHost::builder("agent")
        .chat(ChatTiers::from_env_or_offline()?)
        .shared_bus(bus)
        .add(McpToolProxy::new().expect("bridge", "shop").beside(eager))
        .build()?;
    agent.start().await?;
    // An agent that expects servers of bridges is ready when they are there.
    while let Err(missing) = agent.readiness() {
        tracing::debug!(%missing, "not ready yet");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let text = "Ask the stock of the shop: product \"chairs\"";
    writeln!(stdout(), "> {text}\n{}", agent.agent().ask("session", text).await?)?;
    for host in [agent, bridge, shop] {
        host.shutdown(Duration::from_secs(5)).await;
    }
    Ok(())
}
