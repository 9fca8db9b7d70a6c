//! Faults, each with counts: cut connections, a broker that stops, poison, killed workers.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rockbot_core::messaging::{
    Bus as _, BusError, DeadLetterReason, DeadLetters as _, Delivery, Disposition, MessagePublisher as _,
    MessageSubscriberExt as _, Reach, RetryPolicy, SubscribeOptions,
};
use tokio::task::JoinSet;
use tokio::time;

use super::broker::{TestBroker, inbox, read, text, until, with_broker};
use crate::copies::Copies;
use crate::pulsar::link::OPERATION_TIME;
use crate::pulsar::{PulsarBus, mapping};

/// Starts publishers of `count` messages each, and returns them with the texts that they send.
fn publishers(bus: &Arc<PulsarBus>, count: usize) -> (JoinSet<()>, HashSet<String>) {
    let mut publishers = JoinSet::new();
    for publisher in 0..4 {
        let bus = Arc::clone(bus);
        publishers.spawn(async move {
            for number in 0..count {
                let sent = bus.publish("a", text(&format!("{publisher}-{number}")).into()).await;
                assert_eq!(sent.unwrap(), Reach::Unknown);
            }
        });
    }
    let texts = (0..4).flat_map(|publisher| (0..count).map(move |number| format!("{publisher}-{number}")));
    (publishers, texts.collect())
}

/// Runs publishers while `disturb` disturbs them, and checks that all that was confirmed arrives.
async fn nothing_is_lost(broker: &mut TestBroker, disturb: impl AsyncFnOnce(&mut TestBroker)) {
    broker.change(|settings| settings.publish_wait = Duration::from_secs(120));
    let bus = broker.bus().await;
    let (seen, mut inbox) = inbox();
    let options = SubscribeOptions::new().with_concurrency(4);
    let _subscription = bus.on_with("a", "s", options, seen).await.unwrap();
    let (mut publishers, mut missing) = publishers(&bus, 100);
    disturb(broker).await;
    while let Some(ended) = publishers.join_next().await {
        ended.unwrap();
    }
    while !missing.is_empty() {
        missing.remove(&read(&inbox.next().await));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_nothing_that_was_confirmed_is_lost_by_cuts() {
    with_broker(async |broker| {
        nothing_is_lost(broker, async |broker| {
            for _ in 0..3 {
                time::sleep(Duration::from_millis(50)).await;
                broker.lite.cut();
            }
        })
        .await;
        assert!(broker.lite.connections() > 1, "{}", broker.lite.connections());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_killed_and_started_has_what_it_confirmed() {
    with_broker(async |broker| {
        nothing_is_lost(broker, async |broker| {
            time::sleep(Duration::from_millis(50)).await;
            broker.lite.restart().await;
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_confirmed_is_sent_again_under_its_id() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let (seen, mut inbox) = inbox();
        let _subscription = bus.on("a", "s", seen).await.unwrap();
        bus.publish("a", text("first").into()).await.unwrap();
        assert_eq!(read(&inbox.next().await), "first");
        broker.lite.cut_at_receipt();
        let sent = Arc::new(text("x"));
        assert_eq!(bus.publish("a", Arc::clone(&sent)).await.unwrap(), Reach::Unknown);
        assert!(!broker.lite.waits_for_receipt());
        // The broker had the first copy, and got a second one: the id tells the receiver.
        let ids = [inbox.next().await, inbox.next().await].map(|delivery| delivery.envelope.message_id.clone());
        assert_eq!(ids, [sent.message_id.clone(), sent.message_id.clone()]);
    })
    .await;
}

/// A consumer of a further copy, which may not be that of the first one, learns that it is one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_further_copy_counts_as_a_further_attempt() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let (seen, mut inbox) = inbox();
        let _subscription = bus.on("a", "s", seen).await.unwrap();
        let link = bus.link();
        let session = link.session(time::Instant::now() + OPERATION_TIME).await.unwrap();
        let topic = link.settings.pulsar_topic("a").unwrap();
        let copies = Copies::default();
        let sent = Arc::new(text("x").with_header("resent", "by hand"));
        let message = mapping::message(&sent).unwrap();
        for attempt in [1, 2, 2] {
            session.producers.send(&topic, &message, &copies).await.unwrap();
            let delivery = inbox.next().await;
            assert_eq!((delivery.envelope, delivery.attempt), (Arc::clone(&sent), attempt));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishing_fails_when_the_broker_stays_away() {
    with_broker(async |broker| {
        broker.change(|settings| settings.publish_wait = Duration::from_millis(500));
        let bus = broker.bus().await;
        bus.publish("a", text("x").into()).await.unwrap();
        broker.lite.stop();
        let failed = bus.publish("a", text("x").into()).await;
        assert!(matches!(failed, Err(BusError::Provider { .. })), "{failed:?}");
        broker.lite.restart().await;
        until("the bus is back", async || {
            bus.publish("a", text("x").into()).await.is_ok()
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn poison_beside_healthy_messages_stops_none() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let poisoned = Arc::new(AtomicUsize::new(0));
        let (seen, mut healthy) = inbox();
        let counted = Arc::clone(&poisoned);
        let handler = move |delivery: Delivery| {
            let seen = seen.clone();
            let counted = Arc::clone(&counted);
            async move {
                use rockbot_core::messaging::DeliveryHandler as _;
                if read(&delivery).starts_with("poison") {
                    counted.fetch_add(1, Ordering::SeqCst);
                    return Disposition::retry("it is poison");
                }
                seen.handle(delivery).await
            }
        };
        let retry = RetryPolicy::default()
            .with_max_attempts(3)
            .with_first_delay(Duration::from_millis(20));
        let options = SubscribeOptions::new().with_concurrency(4).with_retry(retry);
        let _subscription = bus.on_with("a", "s", options, handler).await.unwrap();
        for number in 0..100 {
            let kind = if number % 10 == 0 { "poison" } else { "healthy" };
            bus.publish("a", text(&format!("{kind} {number}")).into())
                .await
                .unwrap();
        }
        for _ in 0..90 {
            healthy.next().await;
        }
        until("the poison is kept", async || {
            bus.dead_letters(100).await.unwrap().len() == 10
        })
        .await;
        let letters = bus.dead_letters(100).await.unwrap();
        let ends: Vec<_> = letters
            .iter()
            .map(|letter| (letter.reason, letter.attempts, &*letter.last_error))
            .collect();
        assert_eq!(ends, [(DeadLetterReason::Exhausted, 3, "it is poison"); 10]);
        assert_eq!((healthy.rest().len(), poisoned.load(Ordering::SeqCst)), (0, 30));
    })
    .await;
}

/// A message that waits an hour for its next attempt waits in the broker, and survives this
/// process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_message_survives_its_consumer() {
    with_broker(async |broker| {
        let first = broker.bus().await;
        let second = broker.bus().await;
        let attempts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&attempts);
        let failing = move |_: Delivery| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Disposition::retry("not yet") }
        };
        let delay = Duration::from_secs(2);
        let retry = RetryPolicy::default().with_first_delay(delay);
        let options = SubscribeOptions::new().with_retry(retry);
        let _first = first.on_with("a", "s", options.clone(), failing).await.unwrap();
        second.publish("a", text("x").into()).await.unwrap();
        until("the first attempt fails", async || attempts.load(Ordering::SeqCst) == 1).await;
        let _ = first.close(Duration::from_secs(1)).await;
        let (seen, mut inbox) = inbox();
        let _second = second.on_with("a", "s", options, seen).await.unwrap();
        let delivery = inbox.next().await;
        assert_eq!((read(&delivery).as_str(), delivery.attempt), ("x", 2));
    })
    .await;
}

/// A worker that is killed in the middle of a call leaves the message to the next worker, marked
/// as a repetition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_leaves_its_message_to_the_next() {
    with_broker(async |broker| {
        let killed = broker.bus().await;
        let next = broker.bus().await;
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let stuck = move |_: Delivery| {
            counted.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<Disposition>()
        };
        let _stuck = killed.on("a", "s", stuck).await.unwrap();
        next.publish("a", text("pay").into()).await.unwrap();
        until("the call runs", async || runs.load(Ordering::SeqCst) == 1).await;
        let (seen, mut inbox) = inbox();
        let _next = next.on("a", "s", seen).await.unwrap();
        assert_eq!(killed.close(Duration::ZERO).await.unfinished, 1);
        let delivery = inbox.next().await;
        assert_eq!((read(&delivery).as_str(), delivery.attempt), ("pay", 2));
        assert!(inbox.rest().is_empty());
    })
    .await;
}

/// A handler that ends after its connection is not run again: the copy is acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_ends_after_its_connection_is_not_run_again() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let runs = Arc::new(AtomicUsize::new(0));
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let counted = Arc::clone(&runs);
        let opened = Arc::clone(&gate);
        let handler = move |_: Delivery| {
            counted.fetch_add(1, Ordering::SeqCst);
            let opened = Arc::clone(&opened);
            async move {
                opened.acquire().await.unwrap().forget();
                Disposition::Ack
            }
        };
        let options = SubscribeOptions::new().with_concurrency(4);
        let _subscription = bus.on_with("a", "s", options, handler).await.unwrap();
        bus.publish("a", text("x").into()).await.unwrap();
        until("the handler runs", async || runs.load(Ordering::SeqCst) == 1).await;
        let before = broker.lite.connections();
        broker.lite.cut();
        until("the topic is consumed again", async || {
            broker.lite.connections() > before
        })
        .await;
        // A further message shows that the subscription is back.
        let (seen, mut inbox) = inbox();
        let _other = bus.on("b", "t", seen).await.unwrap();
        bus.publish("b", text("y").into()).await.unwrap();
        assert_eq!(read(&inbox.next().await), "y");
        gate.add_permits(10);
        let report = bus.close(Duration::from_secs(10)).await;
        assert_eq!((report.unfinished, runs.load(Ordering::SeqCst)), (0, 1));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_waiting_messages_are_handled() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let (seen, _inbox) = inbox();
        bus.on("a", "s", seen).await.unwrap().close().await;
        let (mut publishers, mut missing) = publishers(&bus, 500);
        while let Some(ended) = publishers.join_next().await {
            ended.unwrap();
        }
        let (seen, mut inbox) = inbox();
        let options = SubscribeOptions::new().with_concurrency(8);
        let subscription = bus.on_with("a", "s", options, seen).await.unwrap();
        for _ in 0..2000 {
            missing.remove(&read(&inbox.next().await));
        }
        subscription.close().await;
        assert_eq!((missing.len(), inbox.rest().len()), (0, 0));
    })
    .await;
}
