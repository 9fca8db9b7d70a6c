//! Faults, each with counts: replies, poison, killed workers, long and full queues.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use rockbot_core::messaging::{
    Bus as _, BusError, DeadLetterReason, DeadLetters as _, Delivery, Disposition, MessagePublisher as _,
    MessagePublisherExt as _, MessageSubscriberExt as _, Reach, RequestClient, RequestError, RetryPolicy,
    SubscribeOptions, headers,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::broker::{PATIENCE, inbox, read, text, until, with_broker};

fn quick_retry(max_attempts: u32) -> RetryPolicy {
    RetryPolicy::default()
        .with_max_attempts(max_attempts)
        .with_first_delay(Duration::from_millis(20))
}

/// Duplicate, late and foreign replies reach no other request: each request ends in its own answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_first_reply_of_a_request_counts() {
    with_broker(async |broker| {
        let asker = broker.bus().await;
        let server = broker.bus().await;
        let replier = Arc::clone(&server);
        let handler = move |delivery: Delivery| {
            let bus = Arc::clone(&replier);
            async move {
                let request = &delivery.envelope;
                let topic = request.reply_to.clone().unwrap();
                let foreign = text("foreign").with_correlation_id("of another request");
                bus.publish(&topic, Arc::new(foreign)).await.unwrap();
                for copy in 0..3 {
                    let answer = text(&format!("{} {copy}", read(&delivery)));
                    bus.reply(request, answer).await.unwrap();
                }
                Disposition::Ack
            }
        };
        let options = SubscribeOptions::new().with_concurrency(8);
        let _subscription = server
            .on_with("ask", &broker.name("s"), options, handler)
            .await
            .unwrap();
        let client = Arc::new(RequestClient::new(asker, "asker").with_time_limit(PATIENCE));
        let mut requests = JoinSet::new();
        for number in 0..50 {
            let client = Arc::clone(&client);
            requests.spawn(async move {
                let answer = client.call("ask", text(&number.to_string())).await.unwrap();
                assert_eq!(answer.body, format!("{number} 0"));
            });
        }
        while let Some(ended) = requests.join_next().await {
            ended.unwrap();
        }
        // Two further copies and one foreign reply of each request.
        until("the strays are counted", async || client.stray_replies() == 150).await;
        assert_eq!(client.open_requests(), 0);
    })
    .await;
}

/// A reply that comes after the time limit of its request is counted, and reaches no later request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_reply_reaches_no_later_request() {
    with_broker(async |broker| {
        let asker = broker.bus().await;
        let server = broker.bus().await;
        let replier = Arc::clone(&server);
        let gate = Arc::new(Semaphore::new(0));
        let arrived = Arc::default();
        let opened = Arc::clone(&gate);
        let counted = Arc::<AtomicU64>::clone(&arrived);
        let handler = move |delivery: Delivery| {
            let bus = Arc::clone(&replier);
            let opened = Arc::clone(&opened);
            let counted = Arc::clone(&counted);
            async move {
                if read(&delivery) == "slow" {
                    counted.fetch_add(1, Ordering::SeqCst);
                    opened.acquire().await.unwrap().forget();
                }
                let answer = text(&format!("to {}", read(&delivery)));
                bus.reply(&delivery.envelope, answer).await.unwrap();
                Disposition::Ack
            }
        };
        let options = SubscribeOptions::new().with_concurrency(2);
        let name = broker.name("s");
        let _subscription = server.on_with("ask", &name, options, handler).await.unwrap();
        let client = RequestClient::new(asker, "asker").with_time_limit(PATIENCE);
        // The client subscribes to its replies with its first request.
        client.call("ask", text("first")).await.unwrap();
        // On a busy machine the time of a request may be over before it was sent, and nothing answers it.
        while arrived.load(Ordering::SeqCst) == 0 {
            let hasty = text("slow").with_header(headers::TIMEOUT_MS, "500");
            let late = client.call("ask", hasty).await;
            assert!(matches!(late, Err(RequestError::TimedOut { .. })), "{late:?}");
        }
        gate.add_permits(1000);
        for number in 0..5 {
            let answer = client.call("ask", text(&number.to_string())).await.unwrap();
            assert_eq!(answer.body, format!("to {number}"));
        }
        until("the late reply is counted", async || {
            client.stray_replies() == arrived.load(Ordering::SeqCst)
        })
        .await;
        assert_eq!(client.open_requests(), 0);
    })
    .await;
}

/// The broker hands a consumer no more messages than its prefetch, so the others stay for further
/// consumers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_is_handed_no_more_than_its_prefetch() {
    with_broker(async |broker| {
        broker.change(|settings| settings.prefetch_count = 3);
        let (bus, other) = (broker.bus().await, broker.bus().await);
        let gate = Arc::new(Semaphore::new(0));
        let opened = Arc::clone(&gate);
        let handler = move |_: Delivery| {
            let opened = Arc::clone(&opened);
            async move {
                opened.acquire().await.unwrap().forget();
                Disposition::Ack
            }
        };
        let name = broker.name("s");
        let stuck = bus.on("a", &name, handler).await.unwrap();
        for number in 0..10 {
            bus.publish("a", text(&number.to_string()).into()).await.unwrap();
        }
        let queue = broker.queue(&name);
        until("seven messages are left", async || broker.counts(&queue).await.0 == 7).await;
        let (seen, mut inbox) = inbox();
        let _other = other.on("a", &name, seen).await.unwrap();
        let expected: Vec<_> = (3..10).map(|number| number.to_string()).collect();
        assert_eq!(inbox.texts(7).await, expected);
        // What was handed over and has not begun goes on with the first consumer.
        gate.add_permits(3);
        until("all are handled", async || gate.available_permits() == 0).await;
        stuck.close().await;
        assert_eq!((broker.counts(&queue).await, inbox.rest()), ((0, 1), Vec::new()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn poison_beside_healthy_messages_stops_none() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let (seen, mut healthy) = inbox();
        let (all, mut poisoned) = inbox();
        let handler = move |delivery: Delivery| {
            let seen = seen.clone();
            let all = all.clone();
            async move {
                use rockbot_core::messaging::DeliveryHandler as _;
                if read(&delivery).starts_with("poison") {
                    all.handle(delivery).await;
                    Disposition::retry("it is poison")
                } else {
                    seen.handle(delivery).await
                }
            }
        };
        let name = broker.name("s");
        let options = SubscribeOptions::new().with_concurrency(4).with_retry(quick_retry(3));
        let _subscription = bus.on_with("a", &name, options, handler).await.unwrap();
        for number in 0..100 {
            let body = if number % 10 == 0 {
                format!("poison {number}")
            } else {
                number.to_string()
            };
            bus.publish("a", text(&body).into()).await.unwrap();
        }
        assert_eq!(healthy.texts(90).await.len(), 90);
        let dead_letters = format!("{}.dlq", broker.queue(&name));
        until("the poison is kept", async || {
            broker.counts(&dead_letters).await.0 == 10
        })
        .await;
        assert_eq!((healthy.rest().len(), poisoned.rest().len()), (0, 30));
        let letters = bus.dead_letters(100).await.unwrap();
        let ends: Vec<_> = letters
            .iter()
            .map(|letter| (letter.reason, letter.attempts, &*letter.last_error))
            .collect();
        assert_eq!(ends, [(DeadLetterReason::Exhausted, 3, "it is poison"); 10]);
        // Inspected twice, they are still there.
        assert_eq!(bus.dead_letters(3).await.unwrap(), letters[..3]);
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
        let name = broker.name("s");
        let _stuck = killed.on("a", &name, stuck).await.unwrap();
        next.publish("a", text("pay").into()).await.unwrap();
        until("the call runs", async || runs.load(Ordering::SeqCst) == 1).await;
        let (seen, mut inbox) = inbox();
        let _next = next.on("a", &name, seen).await.unwrap();
        assert_eq!(killed.close(Duration::ZERO).await.unfinished, 1);
        let delivery = inbox.next().await;
        assert_eq!((read(&delivery).as_str(), delivery.attempt), ("pay", 2));
        assert!(inbox.rest().is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_waiting_messages_are_handled_with_a_bounded_prefetch() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let name = broker.name("s");
        let (seen, _inbox) = inbox();
        drop(bus.on("a", &name, seen).await.unwrap());
        let queue = broker.queue(&name);
        until("the consumer has left", async || broker.counts(&queue).await.1 == 0).await;
        let mut publishers = JoinSet::new();
        for publisher in 0..50 {
            let bus = Arc::clone(&bus);
            publishers.spawn(async move {
                for number in 0..200 {
                    bus.publish("a", text(&format!("{publisher}-{number}")).into())
                        .await
                        .unwrap();
                }
            });
        }
        while let Some(ended) = publishers.join_next().await {
            ended.unwrap();
        }
        assert_eq!(broker.counts(&queue).await.0, 10_000);
        let (seen, mut inbox) = inbox();
        let options = SubscribeOptions::new().with_concurrency(8);
        let subscription = bus.on_with("a", &name, options, seen).await.unwrap();
        let mut texts = inbox.texts(10_000).await;
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), 10_000);
        subscription.close().await;
        assert_eq!(broker.counts(&queue).await, (0, 0));
    })
    .await;
}

/// A full queue refuses further messages; each publisher knows, and what was accepted is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_refuses_messages_and_loses_none() {
    with_broker(async |broker| {
        broker.change(|settings| settings.max_queue_length = Some(10));
        let bus = broker.bus().await;
        let name = broker.name("s");
        let (seen, _inbox) = inbox();
        drop(bus.on("a", &name, seen).await.unwrap());
        let queue = broker.queue(&name);
        until("the consumer has left", async || broker.counts(&queue).await.1 == 0).await;
        let mut accepted = Vec::new();
        let mut refused = 0;
        for number in 0..30 {
            match bus.publish("a", text(&number.to_string()).into()).await {
                Ok(Reach::Subscribers) => accepted.push(number.to_string()),
                Err(BusError::Rejected(topic)) if topic == "a" => refused += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(refused > 0 && accepted.len() >= 10, "{refused} {}", accepted.len());
        let (seen, mut inbox) = inbox();
        let _subscription = bus.on("a", &name, seen).await.unwrap();
        assert_eq!(inbox.texts(accepted.len()).await, accepted);
    })
    .await;
}
