//! Programs that are connected by RabbitMQ.

use std::process::Stdio;

use rockbot::message::rabbitmq::{RabbitMqBus, RabbitMqSettings};
use rockbot::message::{Bus as _, UserProxyTopics};
use rockbot::{AgentIdentity, IdSource as _, RandomIds};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::example_programs::{example, run, text};

/// Returns the URL of the broker, and settings that no other test has. Without a broker the test is skipped.
async fn broker() -> Option<(String, RabbitMqSettings)> {
    let url = std::env::var("ROCKBOT_TEST_RABBITMQ_URL").unwrap_or_else(|_| "amqp://127.0.0.1:5672".to_owned());
    let mut settings = RabbitMqSettings::from_url(&url).unwrap();
    let network = format!("test-{}", RandomIds.next_id());
    settings.dead_letter_exchange_name = format!("{network}.dlx");
    settings.queue_prefix.clone_from(&network);
    settings.exchange_name = network;
    match RabbitMqBus::connect(settings.clone()).await {
        Ok(bus) => {
            bus.delete_topology().await.unwrap();
            let _ = bus.close(std::time::Duration::ZERO).await;
            Some((url, settings))
        }
        Err(error) if std::env::var("ROCKBOT_TEST_REQUIRE").is_ok_and(|require| require == "all") => panic!("{error}"),
        Err(error) => {
            println!("SKIPPED: {error}");
            None
        }
    }
}

#[tokio::test]
async fn an_agent_its_tool_and_its_user_are_three_processes() {
    let Some((url, _)) = broker().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--bus", url.as_str(), "--ask", "What is 6 * 7?"];
    let output = run("distributed", &arguments, folder.path()).await;
    let (answer, told) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{told}");
    assert!(answer.ends_with("`calculate` says:\n42\n"), "{answer}");
    for part in ["worker", "agent"] {
        assert!(told.contains(&format!("the {part} is process ")), "{told}");
    }
}

#[tokio::test]
async fn the_chat_talks_to_the_full_agent_over_the_broker() {
    let Some((url, settings)) = broker().await else { return };
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
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    ready(&mut agent).await;
    let note = r#"Take a note: "buy milk""#;
    let output = run("chat", &["--config", config, "--bus", &url, note], folder.path()).await;
    let (answer, told) = (text(&output.stdout), text(&output.stderr));
    agent.kill().await.unwrap();
    clean_up(settings).await;
    assert!(output.status.success(), "{told}");
    assert!(answer.ends_with("`take_note` says:\nNoted.\n"), "{answer}");
    assert!(!folder.path().join("data/chat").exists());
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
