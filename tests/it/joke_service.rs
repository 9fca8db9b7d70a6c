//! The example `joke_service` as a program: the demo, `put-config`, and the service of agents in
//! other processes.

use std::path::Path;
use std::process::{Output, Stdio};

use rockbot::tool_services::DescriptorFolder;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use crate::example_programs::{PATIENCE, example, run, text};

const SERVICE: &str = include_str!("../../examples/joke_service/joke-service.json");
const TOOL: &str = include_str!("../../examples/joke_service/tell-joke.json");

#[tokio::test]
async fn a_joke_comes_through_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let output = run("joke_service", &["--demo", "--about", "animals"], folder.path()).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let joke = "`tell-joke` says:\nHey local! Here's a pun for you:\n\n\
                Why do cats make bad storytellers? They only have one tail.\n";
    assert!(text(&output.stdout).ends_with(joke), "{}", text(&output.stdout));
}

/// Runs `put-config` with a descriptor on its standard input.
async fn put(folder: &Path, key: &str, json: &str) -> Output {
    let mut child = example("joke_service", &["put-config", "descriptors", key], folder)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(json.as_bytes()).await.unwrap();
    timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap()
}

#[tokio::test]
async fn put_config_checks_a_descriptor_and_puts_it_under_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let refused = put(folder.path(), "tool/tell-joke", SERVICE).await;
    let expected = "error: `tool/tell-joke`: field `type` is missing: set it to a text\n";
    assert_eq!(
        (refused.status.code(), text(&refused.stderr).as_str()),
        (Some(1), expected)
    );
    assert!(!folder.path().join("descriptors").exists());

    let put_first = put(folder.path(), "tool/tell-joke", TOOL).await;
    assert!(put_first.status.success());
    let warning = "field `service` is `joke-service`: no tool service has this key or id";
    assert!(text(&put_first.stderr).contains(warning), "{}", text(&put_first.stderr));
    let put_second = put(folder.path(), "tool-service/joke-service", SERVICE).await;
    assert_eq!(
        text(&put_second.stdout),
        "tool-service/joke-service is in descriptors\n"
    );
    assert_eq!(text(&put_second.stderr), "");
    let descriptors = folder.path().join("descriptors");
    assert_eq!(DescriptorFolder::new(&descriptors).problems(), []);
    assert_eq!(
        std::fs::read_to_string(descriptors.join("tool/tell-joke.json")).unwrap(),
        TOOL
    );
}

#[tokio::test]
async fn the_chat_says_that_its_services_need_a_broker() {
    let folder = tempfile::tempdir().unwrap();
    let descriptors = folder.path().join("descriptors");
    std::fs::create_dir(&descriptors).unwrap();
    std::fs::write(descriptors.join("bad.json"), "{").unwrap();
    let output = run("chat", &["--tool-services", "descriptors", "Hi"], folder.path()).await;
    let told = text(&output.stderr);
    assert!(!output.status.success());
    assert!(
        told.starts_with("warning: `descriptors/bad.json`: it is not JSON: "),
        "{told}"
    );
    assert!(
        told.contains("error: `--tool-services` needs the broker that the services use"),
        "{told}"
    );
}

#[cfg(feature = "rabbitmq")]
mod over_a_broker {
    use std::time::Duration;

    use rockbot::message::Bus as _;
    use rockbot::message::rabbitmq::{ExchangeLayout, RabbitMqBus, RabbitMqSettings};
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    use super::*;
    use crate::support::networks::broker::Exchange;

    #[tokio::test]
    async fn agents_in_other_processes_have_the_tool() {
        let Some(exchange) = Exchange::open().await else { return };
        let settings = &exchange.settings;
        let folder = tempfile::tempdir().unwrap();
        let topic = settings.exchange_name.as_str();
        let arguments = ["--bus", exchange.url.as_str(), "--topic", topic];
        let mut service = example("joke_service", &arguments, folder.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut printed = BufReader::new(service.stdout.take().unwrap()).lines();
        let ready = timeout(PATIENCE, printed.next_line()).await.unwrap().unwrap();
        assert_eq!(ready.as_deref(), Some("ready"));

        let descriptors = folder.path().join("data/full_agent/agent/tool-services");
        let put = DescriptorFolder::new(&descriptors);
        let of_topic = format!(r#"{{ "id": "joke-service", "topic": "{topic}", "config-params": ["style"] }}"#);
        put.put("tool-service/joke-service", &of_topic).unwrap();
        put.put("tool/tell-joke", TOOL).unwrap();
        let config = folder.path().join("agent.toml");
        let RabbitMqSettings { host_name, port, .. } = settings;
        let section = format!(
            "[RabbitMq]\nHostName = \"{host_name}\"\nPort = {port}\nExchangeName = \"{topic}\"\n\
             DeadLetterExchangeName = \"{topic}.dlx\"\nQueuePrefix = \"{topic}\"\n"
        );
        std::fs::write(&config, section).unwrap();
        let config = config.to_str().unwrap();
        let descriptors = descriptors.to_str().unwrap();
        let question = "Tell a joke, topic \"animals\"";
        let joke = "Why do cats make bad storytellers? They only have one tail.\n";
        let chat = ["--config", config, "--tool-services", descriptors, question];
        let full_agent = ["--config", config, "--ask", question];
        for (name, arguments) in [("chat", &chat[..]), ("full_agent", &full_agent[..])] {
            let output = run(name, arguments, folder.path()).await;
            let answer = text(&output.stdout);
            let told = text(&output.stderr);
            assert!(
                output.status.success() && answer.ends_with(joke),
                "{name}: {answer}\n{told}"
            );
        }

        // The end of its standard input ends the service.
        drop(service.stdin.take());
        assert!(timeout(PATIENCE, service.wait()).await.unwrap().unwrap().success());
        clean_up(settings.clone()).await;
        exchange.delete(&[]).await;
    }

    async fn clean_up(settings: RabbitMqSettings) {
        let of_services = settings.clone().with_exchange_layout(ExchangeLayout::Fanout);
        let bus = RabbitMqBus::connect(of_services).await.unwrap();
        let topic = settings.exchange_name.clone();
        for direction in ["request", "response"] {
            // Declared here, too, so that they are deleted.
            let topic = format!("tg.{direction}.{topic}");
            let envelope = rockbot::message::MessageEnvelope::new("end", "{}");
            let _ = rockbot::message::MessagePublisher::publish(&bus, &topic, envelope.into()).await;
        }
        let queue = format!("tg.request.{topic}.joke-service-request");
        bus.delete_subscription(&queue).await.unwrap();
        bus.delete_topology().await.unwrap();
        let _ = bus.close(Duration::ZERO).await;
        crate::distributed::clean_up(settings).await;
    }
}
