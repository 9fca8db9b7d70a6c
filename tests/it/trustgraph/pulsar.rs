//! One Pulsar broker shared with TrustGraph: its joke service as it is installed, and its client.

use rockbot::message::pulsar::{PulsarBus, PulsarSettings, TopicLayout};

use super::*;
use crate::pulsar_lite::PulsarLite;

/// Starts a broker. Without it, or without TrustGraph, the test is skipped.
async fn neighbour() -> Option<(String, PulsarLite, Arc<PulsarBus>)> {
    let python = match trustgraph() {
        Ok(python) => python,
        Err(why) => {
            let is_required = std::env::var("ROCKBOT_TEST_REQUIRE").is_ok_and(|require| require == "all");
            assert!(!is_required, "{why}");
            println!("SKIPPED: {why}");
            return None;
        }
    };
    let lite = PulsarLite::start().await?;
    let settings = PulsarSettings::from_url(&url(&lite)).unwrap();
    let bus = PulsarBus::connect(settings.with_topic_layout(TopicLayout::TrustGraph)).await;
    Some((python, lite, Arc::new(bus.unwrap())))
}

fn url(lite: &PulsarLite) -> String {
    format!("pulsar://127.0.0.1:{}", lite.port)
}

#[tokio::test]
async fn our_agent_calls_the_joke_service_of_trustgraph() {
    let Some((python, lite, bus)) = neighbour().await else {
        return;
    };
    let mut service = Command::new(python.replace("/python", "/joke-service"))
        .args(["--pubsub-backend", "pulsar", "--pulsar-host", &url(&lite)])
        .args(["--no-metrics", "--no-loki-enabled"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let host = agent(bus.clone(), "joke", "pun", &DescriptorFolder::new(folder.path())).await;
    // The service does not tell when it is ready, and the broker drops what comes before.
    let called = async {
        loop {
            let asked = call(&host, json!({"topic": "llama"}));
            if let Ok((Ok(joke), _)) = timeout(Duration::from_secs(2), asked).await {
                return joke;
            }
        }
    };
    let joke = timeout(PATIENCE, called).await.expect("the service answers");
    assert!(joke.starts_with("Here's a pun for you:"), "{joke}");
    service.kill().await.unwrap();
    host.shutdown(Duration::from_secs(1)).await;
    let _ = bus.close(Duration::ZERO).await;
}

#[tokio::test]
async fn a_client_of_trustgraph_calls_our_service() {
    let Some((python, lite, bus)) = neighbour().await else {
        return;
    };
    let running = serve(bus.clone(), "joke").await;
    let backend = json!({"pubsub_backend": "pulsar", "pulsar_host": url(&lite)});
    let printed = ask(command(&python, "client.py"), &backend, "joke", &calls()).await;
    assert_eq!(printed, answers());
    running.shutdown().await;
    let _ = bus.close(Duration::ZERO).await;
}
