//! The agent that has the bridge's servers. In another process it would differ only by its bus.

use std::sync::Arc;
use std::time::Duration;

use rockbot::mcp::{McpExposure, McpServerState, McpServers, McpToolProxy, McpTools};
use rockbot::prelude::*;

use crate::{DRAIN, print};

/// Time that the agent waits for the servers of the bridge.
const PATIENCE: Duration = Duration::from_secs(30);

/// The questions about the notes.
const QUESTIONS: [&str; 2] = ["Add the note \"buy milk\".", "Search the notes for \"milk\"."];

/// Asks an agent on the bus the question, or those about notes, and prints the answers.
pub(crate) async fn ask(bus: Arc<dyn Bus>, bridge: &AgentHost, question: Option<String>) -> Result<(), BoxError> {
    let agent = agent(bus, bridge)?;
    agent.start().await?;
    tokio::time::timeout(PATIENCE, ready(&agent)).await?;
    let questions = match question {
        Some(question) => vec![question],
        None => QUESTIONS.map(str::to_owned).to_vec(),
    };
    for question in questions {
        let answer = agent.agent().ask("my-session", question.as_str()).await?;
        print(&format!("\n> {question}\n{answer}"))?;
    }
    agent.shutdown(DRAIN).await;
    Ok(())
}

/// Builds the agent, which is ready once it has the tools of every server to which the bridge is
/// connected.
fn agent(bus: Arc<dyn Bus>, bridge: &AgentHost) -> Result<AgentHost, BoxError> {
    let name = bridge.parts().identity().name();
    let connected = bridge.parts().require::<McpServers>()?.list().into_iter();
    let connected = connected.filter(|server| server.state == McpServerState::Connected);
    let proxy = connected.fold(McpToolProxy::new(), |proxy, server| proxy.expect(name, &server.name));
    // The offline model finds only tools that are in its request.
    let proxy = proxy.beside(McpTools::default().exposure(McpExposure::Eager));
    let host = AgentHost::builder("agent")
        .chat(ChatTiers::from_env_or_offline()?)
        .shared_bus(bus)
        .add(proxy)
        .build()?;
    Ok(host)
}

/// Waits until the agent is ready.
async fn ready(agent: &AgentHost) {
    while agent.readiness().is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
