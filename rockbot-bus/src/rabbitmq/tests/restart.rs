//! A broker that stops and starts again.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::messaging::{MessagePublisher as _, MessageSubscriberExt as _};
use tokio::task::JoinSet;
use tokio::time;

use super::broker::{inbox, read, text, with_broker};

/// Under load, each message whose publisher was told that the broker has it arrives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs the command in ROCKBOT_TEST_RABBITMQ_RESTART, which stops and starts a broker that other tests may share"]
async fn a_restarted_broker_has_what_it_confirmed() {
    let Ok(restart) = std::env::var("ROCKBOT_TEST_RABBITMQ_RESTART") else {
        eprintln!("SKIPPED: ROCKBOT_TEST_RABBITMQ_RESTART names no command that restarts the broker");
        return;
    };
    with_broker(async |broker| {
        broker.change(|settings| settings.publish_wait = Duration::from_secs(120));
        let bus = broker.bus().await;
        let (seen, mut inbox) = inbox();
        let _subscription = bus.on("a", &broker.name("s"), seen).await.unwrap();
        let mut publishers = JoinSet::new();
        for publisher in 0..8 {
            let bus = Arc::clone(&bus);
            publishers.spawn(async move {
                for number in 0..200 {
                    let sent = bus.publish("a", text(&format!("{publisher}-{number}")).into()).await;
                    sent.unwrap();
                }
            });
        }
        time::sleep(Duration::from_millis(200)).await;
        let restarted = tokio::task::spawn_blocking(move || std::process::Command::new(restart).status());
        assert!(restarted.await.unwrap().unwrap().success());
        while let Some(ended) = publishers.join_next().await {
            ended.unwrap();
        }
        let all = (0..8).flat_map(|publisher| (0..200).map(move |number| format!("{publisher}-{number}")));
        let mut missing: std::collections::HashSet<_> = all.collect();
        while !missing.is_empty() {
            missing.remove(&read(&inbox.next().await));
        }
    })
    .await;
}
