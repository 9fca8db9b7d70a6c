//! A broker that stops and starts again under load.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rockbot_core::messaging::{
    MessagePublisher as _, MessageSubscriberExt as _, RequestClient, SubscribeOptions, Subscription,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::broker::{TestBroker, inbox, read, replies, text, until, with_broker_at};
use super::node::Node;
use crate::rabbitmq::RabbitMqBus;

/// Starts publishers, and returns them with the texts that they send.
fn publishers(bus: &Arc<RabbitMqBus>, sent: &Arc<AtomicUsize>) -> (JoinSet<()>, HashSet<String>) {
    let mut publishers = JoinSet::new();
    for publisher in 0..8 {
        let bus = Arc::clone(bus);
        let sent = Arc::clone(sent);
        publishers.spawn(async move {
            for number in 0..1000 {
                let envelope = text(&format!("{publisher}-{number}"));
                bus.publish("a", envelope.into()).await.unwrap();
                sent.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    let texts = (0..8).flat_map(|publisher| (0..1000).map(move |number| format!("{publisher}-{number}")));
    (publishers, texts.collect())
}

/// Starts a service, and returns the subscription that it lives with.
async fn service(broker: &TestBroker) -> Subscription {
    let server = broker.bus().await;
    let handler = replies(&server);
    let options = SubscribeOptions::new().with_concurrency(4);
    let subscription = server.on_with("ask", &broker.name("t"), options, handler).await;
    subscription.unwrap()
}

/// Asks until `is_over`, adds up the answers in `answers`, and returns the number of requests that
/// ended in an error.
async fn ask(
    client: Arc<RequestClient>,
    caller: usize,
    answers: Arc<AtomicUsize>,
    is_over: CancellationToken,
) -> usize {
    let mut errors = 0;
    for number in 0.. {
        if is_over.is_cancelled() {
            break;
        }
        match client.call("ask", text(&format!("{caller}-{number}"))).await {
            Ok(answer) => {
                assert_eq!(answer.body, format!("re: {caller}-{number}"));
                answers.fetch_add(1, Ordering::SeqCst);
            }
            Err(_) => errors += 1,
        }
    }
    errors
}

/// A message that the broker has confirmed arrives, and each request ends in its answer or in an
/// error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_broker_has_what_it_confirmed() {
    let Some(mut node) = Node::start().await else { return };
    let url = node.url();
    with_broker_at(&url, async |broker| {
        broker.change(|settings| settings.publish_wait = Duration::from_secs(300));
        let bus = broker.bus().await;
        let (seen, mut inbox) = inbox();
        let _subscription = bus.on("a", &broker.name("s"), seen).await.unwrap();
        let sent = Arc::new(AtomicUsize::new(0));
        let (mut publishers, mut missing) = publishers(&bus, &sent);
        let _service = service(broker).await;
        let is_over = CancellationToken::new();
        let client = RequestClient::new(broker.bus().await, "asker").with_time_limit(Duration::from_secs(2));
        let client = Arc::new(client);
        let answers: [Arc<AtomicUsize>; 4] = Default::default();
        let callers = answers.iter().enumerate();
        let callers = callers.map(|(caller, answers)| {
            tokio::spawn(ask(Arc::clone(&client), caller, Arc::clone(answers), is_over.clone()))
        });
        let callers: Vec<_> = callers.collect();
        until("messages flow", async || sent.load(Ordering::SeqCst) >= 100).await;
        until("each caller has an answer", async || {
            answers.iter().all(|answers| answers.load(Ordering::SeqCst) > 0)
        })
        .await;
        node.restart().await;
        while let Some(ended) = publishers.join_next().await {
            ended.unwrap();
        }
        while !missing.is_empty() {
            missing.remove(&read(&inbox.next().await));
        }
        until("the service is back", async || {
            client.call("ask", text("x")).await.is_ok()
        })
        .await;
        is_over.cancel();
        for caller in callers {
            assert!(caller.await.unwrap() > 0, "the restart lasts longer than a request may");
        }
        assert_eq!(client.open_requests(), 0);
    })
    .await;
}
