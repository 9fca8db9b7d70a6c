//! Programs that are connected by RabbitMQ.

use std::process::Stdio;

use rockbot::AgentIdentity;
use rockbot::implement::bus::UserProxyTopics;
use rockbot::message::Bus as _;
use rockbot::message::rabbitmq::{RabbitMqBus, RabbitMqSettings};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::example_programs::{OFFLINE, example, run, text};
use crate::support::networks::broker::Exchange;

#[tokio::test]
async fn an_agent_its_tool_and_its_user_are_three_processes() {
    let Some(exchange) = Exchange::open().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--bus", exchange.url.as_str(), "--ask", "What is 6 * 7?"];
    let output = run("distributed", &arguments, folder.path()).await;
    exchange.delete(&[]).await;
    let answer = text(&output.stdout);
    let told = text(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(answer.ends_with("`calculate` says:\n42\n"), "{answer}");
    for part in ["worker", "agent"] {
        assert!(told.contains(&format!("the {part} is process ")), "{told}");
    }
}

#[cfg(feature = "a2a")]
#[tokio::test]
async fn an_agent_and_the_one_that_it_asks_are_two_processes() {
    let Some(exchange) = Exchange::open().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--bus", exchange.url.as_str()];
    let output = run("a2a", &arguments, folder.path()).await;
    exchange.delete(&[]).await;
    let said = text(&output.stdout);
    let told = text(&output.stderr);
    assert!(output.status.success(), "{told}");
    let answers: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("The mathematician"))
        .collect();
    assert_eq!(answers, ["The mathematician says: 42"]);
    assert!(told.contains("the mathematician is process "), "{told}");
}

#[tokio::test]
async fn the_chat_talks_to_the_full_agent_over_the_broker() {
    let Some(exchange) = Exchange::open().await else { return };
    let url = exchange.url.clone();
    let settings = exchange.settings.clone();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("agent.toml");
    let network = &settings.exchange_name;
    let section = format!(
        "[RabbitMq]\nExchangeName = \"{network}\"\nDeadLetterExchangeName = \"{network}.dlx\"\nQueuePrefix = \"{network}\"\n"
    );
    std::fs::write(&config, section).unwrap();
    let config = config.to_str().unwrap();
    let arguments = ["--port", "0", "--config", config, "--bus", &url];
    let mut agent = example("full_agent", &arguments, folder.path())
        .envs([OFFLINE])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    ready(&mut agent).await;
    let note = r#"Take a note: "buy milk""#;
    let output = run("chat", &["--config", config, "--bus", &url, note], folder.path()).await;
    let answer = text(&output.stdout);
    let told = text(&output.stderr);
    agent.kill().await.unwrap();
    clean_up(settings).await;
    exchange.delete(&[]).await;
    assert!(output.status.success(), "{told}");
    assert!(answer.ends_with("`take_note` says:\nNoted.\n"), "{answer}");
    assert!(!folder.path().join("data/chat").exists());
}

#[cfg(feature = "mcp-server")]
#[tokio::test]
async fn the_chat_and_the_full_agent_have_the_servers_of_a_bridge() {
    let Some(exchange) = Exchange::open().await else { return };
    let url = exchange.url.clone();
    let settings = exchange.settings.clone();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("agent.toml");
    let network = &settings.exchange_name;
    let section = format!(
        "[RabbitMq]\nExchangeName = \"{network}\"\nDeadLetterExchangeName = \"{network}.dlx\"\nQueuePrefix = \"{network}\"\n\
         [Mcp]\nExposure = \"eager\"\n[McpProxy]\nExpected = [\"mcp-bridge/notes\"]\n"
    );
    std::fs::write(&config, section).unwrap();
    let config = config.to_str().unwrap();
    let servers = folder.path().join("mcp.json");
    let notes = example("mcp_server", &[], folder.path());
    let notes = json!({"mcpServers": {"notes": {"command": notes.as_std().get_program().to_str()}}});
    std::fs::write(&servers, notes.to_string()).unwrap();
    let servers = servers.to_str().unwrap();
    let data = folder.path().join("bridge");
    let bridge = [
        "--config",
        config,
        "--mcp",
        servers,
        "--mcp-bus",
        &url,
        "--data",
        data.to_str().unwrap(),
    ];
    let bridge = ["mcp", "bridge", "--port", "0", "--allow", "mcp.example.com"]
        .iter()
        .chain(&bridge)
        .copied();
    let mut bridge = example("chat", &bridge.collect::<Vec<_>>(), folder.path())
        .spawn()
        .unwrap();
    ready(&mut bridge).await;

    let note = r#"Add the note "buy milk"."#;
    let arguments = ["--config", config, "--yes", "--mcp-bus", &url, note];
    let output = run("chat", &arguments, folder.path()).await;
    let answer = text(&output.stdout);
    let told = text(&output.stderr);
    assert!(answer.ends_with("`notes__add_note` says:\nnoted\n"), "{answer}{told}");
    assert!(
        told.contains("MCP server `notes` of the bridge `mcp-bridge`: 3 tools"),
        "{told}"
    );

    let find = r#"Search the notes for "milk"."#;
    let arguments = ["--config", config, "--bus", &url, "--mcp-bridges", "--ask", find];
    let output = run("full_agent", &arguments, folder.path()).await;
    let answer = text(&output.stdout);
    let told = text(&output.stderr);
    assert!(
        answer.ends_with("`notes__search_notes` says:\nbuy milk\n"),
        "{answer}{told}"
    );
    bridge.kill().await.unwrap();
    clean_up(settings).await;
    exchange.delete(&[]).await;
}

/// Waits until the agent logs that it is ready.
async fn ready(agent: &mut tokio::process::Child) {
    let mut log = BufReader::new(agent.stderr.take().unwrap()).lines();
    let started = async { while !log.next_line().await.unwrap().unwrap().contains("\"ready\"") {} };
    tokio::time::timeout(std::time::Duration::from_secs(60), started)
        .await
        .expect("the agent becomes ready");
    // The rest of its log is read, so that it never waits for its reader.
    tokio::spawn(async move { while log.next_line().await.is_ok_and(|line| line.is_some()) {} });
}

/// Deletes the queues of the agent, which was killed.
pub(crate) async fn clean_up(settings: RabbitMqSettings) {
    let bus = RabbitMqBus::connect(settings).await.unwrap();
    let identity = AgentIdentity::new("full-agent");
    let topics = [
        UserProxyTopics::USER_MESSAGE,
        UserProxyTopics::USER_FEEDBACK,
        UserProxyTopics::HISTORY_REQUEST,
        UserProxyTopics::APPROVAL_DECISION,
        "tool.invoke",
        "full_agent.status",
    ];
    for topic in topics {
        let deleted = bus.delete_subscription(&identity.subscription_name(topic)).await;
        deleted.unwrap();
    }
    bus.delete_topology().await.unwrap();
    let _ = bus.close(std::time::Duration::ZERO).await;
}
