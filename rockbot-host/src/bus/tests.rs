//! Behaviour of the in-process bus beyond the conformance suite of all buses.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use rockbot_core::messaging::{
    DeadLetterReason, Disposition, Message, MessagePublisherExt as _, MessageSubscriberExt as _, PartitionBy,
    RequestClient, RequestError, WhenFull,
};
use rockbot_core::testing::{SequentialIds, conformance};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::*;

#[tokio::test(start_paused = true)]
async fn conforms() {
    conformance::bus(async || Arc::new(InProcessBus::new())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms_on_several_threads() {
    conformance::bus(async || Arc::new(InProcessBus::new())).await;
}

#[tokio::test(start_paused = true)]
async fn a_message_without_a_subscription_reaches_none() {
    let bus = InProcessBus::new();
    assert_eq!(publish(&bus, "t", "1").await.unwrap(), Reach::NoSubscribers);
}

#[tokio::test(start_paused = true)]
async fn routes_follow_the_subscriptions() {
    let bus = InProcessBus::new();
    publish(&bus, "t", "before").await.unwrap();
    let subscription = bus.on("t", "s", ack).await.unwrap();
    assert_eq!(publish(&bus, "t", "during").await.unwrap(), Reach::Subscribers);
    drop(subscription);
    assert_eq!(publish(&bus, "t", "after").await.unwrap(), Reach::NoSubscribers);
}

#[derive(serde::Serialize)]
struct Invoice {
    number: u32,
}

impl Message for Invoice {
    const TYPE: &'static str = "billing.Invoice";
    const TOPIC: Option<&'static str> = Some("billing.invoice");
}

#[tokio::test(start_paused = true)]
async fn a_message_is_sent_with_headers_and_a_partition_key() {
    let bus = InProcessBus::new();
    let (seen, mut inbox) = mpsc::channel(8);
    let handler = move |delivery: Delivery| {
        let seen = seen.clone();
        async move {
            // Without the partition the second message would overtake the first.
            if delivery.envelope.body == r#"{"number":1}"# && delivery.attempt == 1 {
                return Disposition::retry("not yet");
            }
            seen.send(delivery.envelope).await.unwrap();
            Disposition::Ack
        }
    };
    let options = SubscribeOptions::new()
        .with_concurrency(4)
        .with_partition_by(PartitionBy::partition_key());
    let _subscription = bus.on_with("billing.#", "books", options, handler).await.unwrap();
    for number in [1, 2] {
        let sending = bus.send("shop", &Invoice { number });
        let reach = sending.header("currency", "EUR").partition_key("ann").await.unwrap();
        assert_eq!(reach, Reach::Subscribers);
    }
    for number in ["1", "2"] {
        let envelope = inbox.recv().await.unwrap();
        assert_eq!(envelope.body, format!(r#"{{"number":{number}}}"#));
        assert_eq!((&*envelope.source, &*envelope.headers["currency"]), ("shop", "EUR"));
    }
}

#[tokio::test(start_paused = true)]
async fn cached_topics_are_bounded() {
    let bus = InProcessBus::new();
    let _subscription = bus.on("t.#", "s", ack).await.unwrap();
    for number in 0..5000 {
        publish(&bus, &format!("t.{number}"), "x").await.unwrap();
    }
    assert!(bus.shared.routes.cached() <= 1024);
}

#[tokio::test(start_paused = true)]
async fn a_publisher_waits_for_room() {
    let bus = InProcessBus::new();
    let gate = Gate::closed();
    let options = SubscribeOptions::new().with_capacity(2);
    let _subscription = bus.on_with("t", "s", options, gate.handler()).await.unwrap();
    publish(&bus, "t", "1").await.unwrap();
    publish(&bus, "t", "2").await.unwrap();
    let (third, ()) = tokio::join!(publish(&bus, "t", "3"), async {
        time::sleep(Duration::from_secs(5)).await;
        gate.open(1);
    });
    assert_eq!(third.unwrap(), Reach::Subscribers);
}

#[tokio::test(start_paused = true)]
async fn a_publisher_does_not_wait_for_ever() {
    let bus = InProcessBus::new();
    let gate = Gate::closed();
    let options = SubscribeOptions::new().with_capacity(1);
    let _subscription = bus.on_with("t", "s", options, gate.handler()).await.unwrap();
    publish(&bus, "t", "1").await.unwrap();
    let start = Instant::now();
    check_full(publish(&bus, "t", "2").await, "s", Duration::from_secs(30));
    assert_eq!(start.elapsed(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn a_full_subscription_that_rejects_keeps_the_message_from_all() {
    let bus = InProcessBus::new();
    let gate = Gate::closed();
    let options = SubscribeOptions::new()
        .with_capacity(1)
        .with_when_full(WhenFull::Reject);
    let _full = bus.on_with("t", "full", options, gate.handler()).await.unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    let _other = bus.on("t", "other", counting(&seen)).await.unwrap();
    publish(&bus, "t", "1").await.unwrap();
    check_full(publish(&bus, "t", "2").await, "full", Duration::ZERO);
    gate.open(1);
    let _ = bus.close(Duration::from_secs(1)).await;
    assert_eq!(seen.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_publisher_that_is_cancelled_has_delivered_to_none() {
    let bus = InProcessBus::new();
    let gate = Gate::closed();
    let options = SubscribeOptions::new().with_capacity(1);
    let _full = bus.on_with("t", "full", options, gate.handler()).await.unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    let _other = bus.on("#", "other", counting(&seen)).await.unwrap();
    publish(&bus, "t", "1").await.unwrap();
    let cancelled = time::timeout(Duration::from_secs(1), publish(&bus, "t", "2")).await;
    assert!(cancelled.is_err());
    gate.open(10);
    publish(&bus, "t", "3").await.unwrap();
    let _ = bus.close(Duration::from_secs(1)).await;
    assert_eq!(seen.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_publisher_fails_when_the_bus_closes() {
    let bus = InProcessBus::new();
    let gate = Gate::closed();
    let options = SubscribeOptions::new().with_capacity(1);
    let _subscription = bus.on_with("t", "s", options, gate.handler()).await.unwrap();
    publish(&bus, "t", "1").await.unwrap();
    let (second, report) = tokio::join!(publish(&bus, "t", "2"), bus.close(Duration::from_secs(1)));
    assert!(matches!(second, Err(BusError::Closed)), "{second:?}");
    assert_eq!(report.unfinished, 1);
}

/// Two topics reach the same two small subscriptions; no interleaving of publishers deadlocks or
/// loses a message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_publishers_pass_through_small_subscriptions() {
    let bus = InProcessBus::new();
    let seen = Arc::new(AtomicUsize::new(0));
    let options = SubscribeOptions::new().with_capacity(1);
    let _a = bus.on_with("#", "a", options.clone(), counting(&seen)).await.unwrap();
    let _b = bus
        .on_with("*", "b", options.with_concurrency(3), counting(&seen))
        .await
        .unwrap();
    let mut publishers = JoinSet::new();
    for publisher in 0..8 {
        let bus = bus.clone();
        publishers.spawn(async move {
            for _ in 0..200 {
                publish(&bus, if publisher % 2 == 0 { "x" } else { "y" }, "m")
                    .await
                    .unwrap();
            }
        });
    }
    while let Some(publisher) = publishers.join_next().await {
        publisher.unwrap();
    }
    assert_eq!(bus.close(Duration::from_secs(30)).await.unfinished, 0);
    assert_eq!(seen.load(Ordering::Relaxed), 2 * 8 * 200);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_too_large_is_refused() {
    let options = InProcessBusOptions {
        max_message_bytes: 10,
        ..InProcessBusOptions::default()
    };
    let bus = InProcessBus::with_options(options);
    let envelope = MessageEnvelope::new("t", "12345").with_header("abc", "def");
    let refused = bus.publish("t", envelope.into()).await;
    assert!(
        matches!(refused, Err(BusError::TooLarge { size: 11, limit: 10 })),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn attempts_are_spaced_as_the_policy_says() {
    let bus = InProcessBus::new();
    let (sender, mut attempts) = mpsc::channel(10);
    let start = Instant::now();
    let handler = move |delivery: Delivery| {
        let sender = sender.clone();
        async move {
            sender
                .try_send((delivery.attempt, start.elapsed().as_millis()))
                .unwrap();
            Disposition::retry("again")
        }
    };
    let _subscription = bus.on("t", "s", handler).await.unwrap();
    publish(&bus, "t", "1").await.unwrap();
    let _ = bus.close(Duration::from_secs(60)).await;
    let mut seen = Vec::new();
    while let Ok(attempt) = attempts.try_recv() {
        seen.push(attempt);
    }
    // Tokio's timers are a millisecond coarse.
    let expected = [(1, 0), (2, 200), (3, 600), (4, 1400)];
    let is_close = |((attempt, at), (number, due)): ((u32, u128), (u32, u128))| attempt == number && at - due <= 3;
    assert!(
        seen.len() == 4 && seen.iter().copied().zip(expected).all(is_close),
        "{seen:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_last_consumer_leaves_behind_is_kept() {
    let bus = InProcessBus::new();
    let gate = Gate::closed();
    let subscription = bus.on("t", "s", gate.handler()).await.unwrap();
    publish(&bus, "t", "running").await.unwrap();
    publish(&bus, "t", "waiting").await.unwrap();
    tokio::task::yield_now().await;
    gate.open(1);
    subscription.close().await;
    let letters = bus.dead_letters(10).await.unwrap();
    let facts = |letter: &DeadLetter| (body(&letter.envelope), letter.reason, letter.attempts);
    let expected = [("waiting".to_owned(), DeadLetterReason::Unsubscribed, 0)];
    assert_eq!(letters.iter().map(facts).collect::<Vec<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_leaves_hands_over_to_the_others() {
    let bus = InProcessBus::new();
    let seen = Arc::new(AtomicUsize::new(0));
    let gate = Gate::closed();
    let leaving = bus.on("t", "s", gate.handler()).await.unwrap();
    for number in 0..10 {
        publish(&bus, "t", &number.to_string()).await.unwrap();
    }
    tokio::task::yield_now().await;
    let _staying = bus.on("t", "s", counting(&seen)).await.unwrap();
    gate.open(1);
    leaving.close().await;
    assert_eq!(bus.close(Duration::from_secs(1)).await.unfinished, 0);
    assert_eq!(seen.load(Ordering::Relaxed), 9);
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_subscription_leaves_nothing_behind() {
    let bus = InProcessBus::new();
    let gate = Gate::closed();
    let options = SubscribeOptions::new().ephemeral();
    let _subscription = bus.on_with("t", "s", options, gate.handler()).await.unwrap();
    publish(&bus, "t", "1").await.unwrap();
    publish(&bus, "t", "2").await.unwrap();
    assert_eq!(bus.close(Duration::ZERO).await.unfinished, 0);
    assert_eq!(bus.dead_letters(10).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_bounded_and_the_evicted_ones_counted() {
    let options = InProcessBusOptions {
        max_dead_letters: 2,
        ..InProcessBusOptions::default()
    };
    let bus = InProcessBus::with_options(options);
    let reject = |_| async { Disposition::dead_letter("no") };
    let _subscription = bus.on("t", "s", reject).await.unwrap();
    for number in ["1", "2", "3"] {
        publish(&bus, "t", number).await.unwrap();
    }
    let _ = bus.close(Duration::from_secs(1)).await;
    let kept: Vec<_> = bus
        .dead_letters(10)
        .await
        .unwrap()
        .iter()
        .map(|letter| body(&letter.envelope))
        .collect();
    assert_eq!(
        (kept, bus.evicted_dead_letters()),
        (vec!["2".to_owned(), "3".to_owned()], 1)
    );
}

#[tokio::test(start_paused = true)]
async fn dropping_the_bus_ends_its_tasks() {
    let bus = InProcessBus::new();
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    let handler = move |_| {
        let held = Arc::clone(&held);
        async move {
            let _held = held;
            std::future::pending().await
        }
    };
    let subscription = bus.on("t", "s", handler).await.unwrap();
    publish(&bus, "t", "1").await.unwrap();
    tokio::task::yield_now().await;
    drop(bus);
    while Arc::strong_count(&alive) > 1 {
        tokio::task::yield_now().await;
    }
    assert!(!subscription.is_active());
}

#[tokio::test(start_paused = true)]
async fn a_question_times_out_and_its_answer_is_stray() {
    let bus = InProcessBus::new();
    let _server = bus
        .on("q", "s", answering(&bus, Duration::from_secs(10), 2))
        .await
        .unwrap();
    let client = client(&bus);
    let start = Instant::now();
    let late = client.call("q", MessageEnvelope::new("q", "late")).await;
    assert!(matches!(late, Err(RequestError::TimedOut { .. })), "{late:?}");
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    assert_eq!((client.open_requests(), client.stray_replies()), (0, 0));
    time::sleep(Duration::from_secs(10)).await;
    assert_eq!(client.stray_replies(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_second_answer_is_stray() {
    let bus = InProcessBus::new();
    let _server = bus.on("q", "s", answering(&bus, Duration::ZERO, 3)).await.unwrap();
    let client = client(&bus);
    for body in ["1", "2"] {
        let answer = client.call("q", MessageEnvelope::new("q", body)).await.unwrap();
        assert_eq!(self::body(&answer), body);
    }
    time::sleep(Duration::from_secs(1)).await;
    assert_eq!((client.open_requests(), client.stray_replies()), (0, 4));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_dropped_leaves_no_waiter() {
    let bus = InProcessBus::new();
    let _server = bus.on("q", "s", ack).await.unwrap();
    let client = client(&bus);
    {
        let question = client.call("q", MessageEnvelope::new("q", ""));
        let dropped = time::timeout(Duration::from_secs(1), question).await;
        assert!(dropped.is_err());
    }
    assert_eq!(client.open_requests(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_question_without_a_subscription_fails_at_once() {
    let bus = InProcessBus::new();
    let client = client(&bus);
    let start = Instant::now();
    let unheard = client.call("q", MessageEnvelope::new("q", "")).await;
    assert!(matches!(unheard, Err(RequestError::NoSubscribers(topic)) if topic == "q"));
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_headers_can_shorten_the_wait_but_not_lengthen_it() {
    let bus = InProcessBus::new();
    let _server = bus.on("q", "s", ack).await.unwrap();
    let client = client(&bus);
    for (asked, waits) in [("2000", 2), ("20000", 5)] {
        let start = Instant::now();
        let question = MessageEnvelope::new("q", "").with_header("rb-timeout-ms", asked);
        client.call("q", question).await.unwrap_err();
        assert_eq!(start.elapsed(), Duration::from_secs(waits));
    }
}

#[tokio::test(start_paused = true)]
async fn closing_the_bus_ends_every_wait() {
    let bus = InProcessBus::new();
    let _server = bus.on("q", "s", ack).await.unwrap();
    let client = client(&bus);
    let start = Instant::now();
    let (answer, _) = tokio::join!(client.call("q", MessageEnvelope::new("q", "")), async {
        time::sleep(Duration::from_secs(1)).await;
        bus.close(Duration::ZERO).await
    });
    assert!(matches!(answer, Err(RequestError::Bus(BusError::Closed))), "{answer:?}");
    assert_eq!(start.elapsed(), Duration::from_secs(1));
}

/// Each question gets its own answer, in whatever order and however often questions are answered.
#[test]
fn answers_are_never_mixed_up() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    proptest!(ProptestConfig::with_cases(32), |(answers in proptest::collection::vec((0u64..8, 0usize..4), 1..20))| {
        runtime.block_on(async {
            let bus = InProcessBus::new();
            let options = SubscribeOptions::new().with_concurrency(8);
            let plan = answers.clone();
            let server = bus.clone();
            let handler = move |delivery: Delivery| {
                let number: usize = body(&delivery.envelope).parse().unwrap();
                let (seconds, times) = plan[number];
                let answer = answering(&server, Duration::from_secs(seconds), times);
                async move { answer(delivery).await }
            };
            let _server = bus.on_with("q", "s", options, handler).await.unwrap();
            let client = client(&bus);
            let ask = |number: usize| client.call("q", MessageEnvelope::new("q", number.to_string()));
            let results = futures_util::future::join_all((0..answers.len()).map(ask)).await;
            for (number, result) in results.into_iter().enumerate() {
                match result {
                    Ok(answer) => assert_eq!(body(&answer), number.to_string()),
                    Err(error) => assert!(matches!(error, RequestError::TimedOut { .. }), "{error}"),
                }
            }
            assert_eq!(client.open_requests(), 0);
        });
    });
}

async fn publish(bus: &InProcessBus, topic: &str, body: &str) -> Result<Reach, BusError> {
    bus.publish(topic, Arc::new(MessageEnvelope::new("test.Text", body.to_owned())))
        .await
}

fn body(envelope: &MessageEnvelope) -> String {
    String::from_utf8_lossy(&envelope.body).into_owned()
}

fn check_full(result: Result<Reach, BusError>, subscription: &str, waited: Duration) {
    let Err(BusError::QueueFull {
        subscription: full,
        waited: time,
    }) = result
    else {
        panic!("{result:?}");
    };
    assert_eq!((full.as_str(), time), (subscription, waited));
}

async fn ack(_: Delivery) -> Disposition {
    Disposition::Ack
}

fn counting(seen: &Arc<AtomicUsize>) -> impl DeliveryHandler + use<> {
    let seen = Arc::clone(seen);
    move |_| {
        seen.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Disposition::Ack)
    }
}

fn client(bus: &InProcessBus) -> RequestClient {
    RequestClient::new(Arc::new(bus.clone()), "asker").with_time_limit(Duration::from_secs(5))
}

type Answering = std::pin::Pin<Box<dyn Future<Output = Disposition> + Send>>;

/// A service that echoes a question `times` times after a delay.
fn answering(
    bus: &InProcessBus,
    after: Duration,
    times: usize,
) -> impl Fn(Delivery) -> Answering + Send + Sync + use<> {
    let bus = bus.clone();
    move |delivery| {
        let bus = bus.clone();
        Box::pin(async move {
            time::sleep(after).await;
            for _ in 0..times {
                let answer = MessageEnvelope::new("a", delivery.envelope.body.clone());
                bus.reply(&delivery.envelope, answer).await.unwrap();
            }
            Disposition::Ack
        })
    }
}

/// A gate that keeps handlers waiting until it is opened for a number of them.
struct Gate(Arc<Semaphore>);

impl Gate {
    fn closed() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    fn open(&self, handlers: usize) {
        self.0.add_permits(handlers);
    }

    fn handler(&self) -> impl DeliveryHandler + use<> {
        let gate = Arc::clone(&self.0);
        move |_| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Disposition::Ack
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_test_can_make_correlation_ids_deterministic() {
    let bus = InProcessBus::new();
    let _server = bus.on("q", "s", answering(&bus, Duration::ZERO, 1)).await.unwrap();
    let client = client(&bus).with_ids(Arc::new(SequentialIds::new()));
    for id in ["id-1", "id-2"] {
        let answer = client.call("q", MessageEnvelope::new("q", "")).await.unwrap();
        assert_eq!(answer.correlation_id.as_deref(), Some(id));
    }
}
