//! Messages that the bus moves to another queue: what they take along, and what happens when the
//! broker refuses them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lapin::options::{BasicGetOptions, BasicPublishOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel};
use rockbot_core::messaging::{
    Bus as _, DeadLetterReason, DeadLetters as _, Delivery, DeliveryHandler, Disposition, MessagePublisher as _,
    MessageSubscriberExt as _, RetryPolicy, SubscribeOptions,
};

use super::broker::{TestBroker, inbox, long, read, table, text, until, with_broker};
use crate::rabbitmq::mapping::{self, KeptHeaders};
use crate::rabbitmq::{ExchangeLayout, topology};

fn list(texts: &[&str]) -> AMQPValue {
    AMQPValue::FieldArray(texts.iter().map(|text| long(text)).collect::<Vec<_>>().into())
}

/// A handler that rejects each message, and the number of its runs.
fn rejecting() -> (impl DeliveryHandler, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let handler = move |_: Delivery| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Disposition::DeadLetter { reason: "bad".into() } }
    };
    (handler, runs)
}

/// Publishes a message as a client does that is none of ours.
async fn publish_by_hand(broker: &TestBroker, topic: &str, properties: BasicProperties) {
    let channel = broker.channel().await;
    let exchange = broker.settings().exchange_name;
    let options = BasicPublishOptions::default();
    let sent = channel.basic_publish(exchange.into(), topic.into(), options, b"{}", properties);
    sent.await.unwrap();
}

/// Replaces a queue by one that takes no message.
async fn replace_by_full(channel: &Channel, queue: &str) {
    let deleted = channel.queue_delete(queue.into(), QueueDeleteOptions::default());
    deleted.await.unwrap();
    let options = QueueDeclareOptions::default();
    let none = AMQPValue::LongInt(0);
    let arguments = table([("x-max-length", none), ("x-overflow", long("reject-publish"))]);
    channel.queue_declare(queue.into(), options, arguments).await.unwrap();
}

#[test]
fn a_moved_message_takes_along_what_its_envelope_needs() {
    let properties = BasicProperties::default()
        .with_message_id("id".into())
        .with_type("test.Text".into())
        .with_correlation_id("correlation".into())
        .with_reply_to("reply".into())
        .with_timestamp(7)
        .with_content_type("text/plain".into())
        .with_content_encoding("identity".into())
        .with_delivery_mode(2)
        .with_app_id("app".into());
    let acting = properties
        .clone()
        .with_user_id("other".into())
        .with_expiration("1000".into())
        .with_priority(9)
        .with_cluster_id("cluster".into())
        .with_headers(table([
            ("rb-source", long("agent")),
            ("foreign", AMQPValue::LongInt(1)),
            ("CC", list(&["other"])),
            ("BCC", list(&["other"])),
            ("x-death", list(&["trace"])),
            ("x-first-death-queue", long("queue")),
            ("nested", AMQPValue::FieldTable(table([("a", long("b"))]))),
        ]));
    let added = || vec![("x-rockbot-attempts", AMQPValue::LongInt(2))];
    let source = ("rb-source", long("agent"));
    let attempts = ("x-rockbot-attempts", AMQPValue::LongInt(2));
    let all = table([source.clone(), ("foreign", AMQPValue::LongInt(1)), attempts.clone()]);
    let moved = mapping::readdressed(&acting, added(), KeptHeaders::ALL);
    assert_eq!(moved, properties.clone().with_headers(all));
    let moved = mapping::readdressed(&acting, added(), KeptHeaders::ALL.own());
    let omitted = ("x-rockbot-omitted", AMQPValue::LongLongInt(1));
    assert_eq!(moved, properties.with_headers(table([source, attempts, omitted])));
}

/// A further copy says so on each way through the broker, and to no reader of headers.
#[test]
fn a_further_copy_is_marked_outside_its_headers() {
    let first = mapping::properties(&text("x").with_header("resent", "by hand"), true).unwrap();
    let further = mapping::resent(&first);
    assert_eq!([&first, &further].map(mapping::is_resent), [false, true]);
    let moved = mapping::readdressed(&further, Vec::new(), KeptHeaders::ALL.own());
    assert!(mapping::is_resent(&moved));
    for layout in [ExchangeLayout::Topic, ExchangeLayout::Fanout] {
        let [read, expected] = [&moved, &first].map(|properties| layout.envelope(properties, b"x".to_vec()));
        assert_eq!(read, expected, "{layout:?}");
    }
}

#[test]
fn moved_headers_fit_into_one_frame() {
    let half = "x".repeat(40_000);
    let properties = BasicProperties::default().with_headers(table([
        ("a", long(&half)),
        ("rb-b", long(&half)),
        ("z", long("last")),
    ]));
    assert!(mapping::has_large_headers(&properties));
    let moved = mapping::readdressed(&properties, Vec::new(), KeptHeaders::ALL);
    let omitted = |count| ("x-rockbot-omitted", AMQPValue::LongLongInt(count));
    let expected = table([("rb-b", long(&half)), ("z", long("last")), omitted(1)]);
    assert_eq!(moved.headers().as_ref(), Some(&expected));
    let added = vec![("rb-b", long("replaced"))];
    let small = mapping::readdressed(&moved, added, KeptHeaders::ALL.within(8192));
    let expected = table([("rb-b", long("replaced")), ("z", long("last"))]);
    assert_eq!(small.headers().as_ref(), Some(&expected));
    let small = mapping::readdressed(&moved, Vec::new(), KeptHeaders::ALL.within(8192));
    assert_eq!(
        small.headers().as_ref(),
        Some(&table([("z", long("last")), omitted(1)]))
    );
    let mut many = text("x");
    for number in 0..20_000 {
        many = many.with_header(format!("{number}"), "");
    }
    assert!(mapping::properties(&many, true).is_err());
}

#[tokio::test]
async fn a_dead_letter_neither_expires_nor_goes_elsewhere() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let channel = broker.channel().await;
        let (name, copies) = (broker.name("s"), broker.name("copies"));
        let declared = channel.queue_declare(
            copies.as_str().into(),
            QueueDeclareOptions::default(),
            FieldTable::default(),
        );
        declared.await.unwrap();
        let exchange = broker.settings().exchange_name;
        let options = QueueBindOptions::default();
        let queue = copies.as_str().into();
        let key = copies.as_str().into();
        let bound = channel.queue_bind(queue, exchange.into(), key, options, FieldTable::default());
        bound.await.unwrap();
        let (handler, runs) = rejecting();
        let _subscription = bus.on("a", &name, handler).await.unwrap();
        let properties = BasicProperties::default()
            .with_message_id("id".into())
            .with_user_id("guest".into())
            .with_expiration("86400000".into())
            .with_headers(table([("CC", list(&[&copies])), ("foreign", long("kept"))]));
        publish_by_hand(broker, "a", properties).await;
        let letters = format!("{}.dlq", broker.queue(&name));
        until("it is a dead letter", async || broker.counts(&letters).await.0 == 1).await;
        let got = channel
            .basic_get(letters.as_str().into(), BasicGetOptions::default())
            .await;
        let properties = got.unwrap().unwrap().delivery.properties.clone();
        assert_eq!((properties.expiration(), properties.user_id()), (&None, &None));
        assert_eq!(mapping::header(&properties, "foreign"), Some(&long("kept")));
        // The sender's own copy, and no other.
        assert_eq!((broker.counts(&copies).await.0, runs.load(Ordering::SeqCst)), (1, 1));
        let deleted = channel.queue_delete(copies.into(), QueueDeleteOptions::default());
        deleted.await.unwrap();
    })
    .await;
}

/// Headers that could not be sent to a retry queue make a message a dead letter before it is
/// handled.
#[tokio::test]
async fn large_headers_are_rejected() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let name = broker.name("s");
        let (handler, runs) = rejecting();
        let _subscription = bus.on("a", &name, handler).await.unwrap();
        let headers = table([("foreign", long(&"x".repeat(100_000))), ("rb-source", long("agent"))]);
        publish_by_hand(broker, "a", BasicProperties::default().with_headers(headers)).await;
        until("it is a dead letter", async || {
            bus.dead_letters(9).await.unwrap().len() == 1
        })
        .await;
        let letter = bus.dead_letters(9).await.unwrap().remove(0);
        assert_eq!(
            (letter.reason, &*letter.envelope.source),
            (DeadLetterReason::Rejected, "agent")
        );
        assert!(letter.last_error.contains("headers"), "{}", letter.last_error);
        assert_eq!(runs.load(Ordering::SeqCst), 0);
    })
    .await;
}

#[tokio::test]
async fn a_deleted_dead_letter_queue_is_declared_again() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let name = broker.name("s");
        let (handler, runs) = rejecting();
        let _subscription = bus.on("a", &name, handler).await.unwrap();
        let letters = format!("{}.dlq", broker.queue(&name));
        let channel = broker.channel().await;
        let deleted = channel.queue_delete(letters.as_str().into(), QueueDeleteOptions::default());
        deleted.await.unwrap();
        bus.publish("a", text("x").into()).await.unwrap();
        until("it is a dead letter", async || {
            bus.dead_letters(9).await.unwrap().len() == 1
        })
        .await;
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    })
    .await;
}

/// Poison whose dead letter is refused is not handled again, and loses the headers of others in
/// the end.
#[tokio::test]
async fn a_refused_dead_letter_is_tried_again_without_foreign_headers() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let name = broker.name("s");
        let (handler, runs) = rejecting();
        let _subscription = bus.on("a", &name, handler).await.unwrap();
        let letters = format!("{}.dlq", broker.queue(&name));
        let channel = broker.channel().await;
        replace_by_full(&channel, &letters).await;
        let headers = table([("foreign", long("x")), ("rb-source", long("agent"))]);
        publish_by_hand(broker, "a", BasicProperties::default().with_headers(headers)).await;
        until("it is handled", async || runs.load(Ordering::SeqCst) == 1).await;
        // Three refusals, a second apart, and a fourth. The broker confirms what is in a queue that is
        // deleted, so the queue must not be deleted at the same moment as the next message comes.
        tokio::time::sleep(Duration::from_millis(3500)).await;
        let deleted = channel.queue_delete(letters.as_str().into(), QueueDeleteOptions::default());
        deleted.await.unwrap();
        until("it is a dead letter", async || {
            bus.dead_letters(9).await.unwrap().len() == 1
        })
        .await;
        let got = channel
            .basic_get(letters.as_str().into(), BasicGetOptions::default())
            .await;
        let properties = got.unwrap().unwrap().delivery.properties;
        let kept = ["foreign", "rb-source"].map(|name| mapping::header_text(&properties, name));
        assert_eq!(kept, [None, Some("agent".to_owned())]);
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    })
    .await;
}

/// Returns a handler that fails always, and what it was called with.
fn failing() -> (impl DeliveryHandler, super::broker::Inbox) {
    let (seen, attempts) = inbox();
    let handler = move |delivery: Delivery| {
        let seen = seen.clone();
        async move {
            seen.handle(delivery).await;
            Disposition::retry("not now")
        }
    };
    (handler, attempts)
}

fn three_attempts() -> SubscribeOptions {
    let retry = RetryPolicy::default()
        .with_max_attempts(3)
        .with_first_delay(Duration::from_millis(20))
        .with_max_delay(Duration::from_millis(20));
    SubscribeOptions::new().with_retry(retry)
}

#[tokio::test]
async fn a_deleted_retry_queue_is_declared_again() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let name = broker.name("s");
        let (handler, mut attempts) = failing();
        let _subscription = bus.on_with("a", &name, three_attempts(), handler).await.unwrap();
        let queue = format!("{}.64", topology::retry_exchange(&broker.settings()));
        for letters in 1..=2 {
            bus.publish("a", text("x").into()).await.unwrap();
            for expected in 1..=3 {
                assert_eq!(attempts.next().await.attempt, expected);
            }
            until("it is a dead letter", async || {
                bus.dead_letters(9).await.unwrap().len() == letters
            })
            .await;
            let channel = broker.channel().await;
            let deleted = channel.queue_delete(queue.as_str().into(), QueueDeleteOptions::default());
            deleted.await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_message_that_no_retry_queue_takes_becomes_a_dead_letter() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let name = broker.name("s");
        let (handler, mut attempts) = failing();
        let _subscription = bus.on_with("a", &name, three_attempts(), handler).await.unwrap();
        bus.publish("a", text("x").into()).await.unwrap();
        until("it is a dead letter", async || {
            bus.dead_letters(9).await.unwrap().len() == 1
        })
        .await;
        let channel = broker.channel().await;
        let exchange = topology::retry_exchange(&broker.settings());
        let queue = format!("{exchange}.64");
        replace_by_full(&channel, &queue).await;
        let matching = table([
            ("x-match", long("all")),
            (topology::RETRY_DELAY, AMQPValue::LongLongInt(64)),
        ]);
        let options = QueueBindOptions::default();
        let bound = channel.queue_bind(queue.into(), exchange.into(), "".into(), options, matching);
        bound.await.unwrap();
        let sent = text("y");
        let id = sent.message_id.clone();
        bus.publish("a", sent.into()).await.unwrap();
        until("it is a dead letter", async || {
            bus.dead_letters(9).await.unwrap().len() == 2
        })
        .await;
        let letter = bus.take_dead_letter(&name, &id).await.unwrap().unwrap();
        assert_eq!((letter.reason, letter.attempts), (DeadLetterReason::Exhausted, 1));
        assert_eq!(attempts.rest(), ["x", "x", "x", "y"]);
    })
    .await;
}

/// Only the message whose handler had begun counts an attempt when its consumer stops.
async fn stop_with_messages(broker: &TestBroker) {
    let stopping = broker.bus().await;
    let next = broker.bus().await;
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let stuck = move |_: Delivery| {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::pending::<Disposition>()
    };
    let name = broker.name("s");
    let _stuck = stopping.on("a.*", &name, stuck).await.unwrap();
    for number in 0..5 {
        let envelope = text(&number.to_string()).with_header("key", "value");
        next.publish("a.b", envelope.into()).await.unwrap();
    }
    let queue = broker.queue(&name);
    until("all are handed over", async || {
        runs.load(Ordering::SeqCst) == 1 && broker.counts(&queue).await.0 == 0
    })
    .await;
    assert_eq!(stopping.close(Duration::ZERO).await.unfinished, 5);
    let (seen, mut inbox) = inbox();
    let _next = next.on("a.*", &name, seen).await.unwrap();
    let mut ends = Vec::new();
    for _ in 0..5 {
        let delivery = inbox.next().await;
        assert_eq!((&*delivery.topic, &*delivery.envelope.headers["key"]), ("a.b", "value"));
        ends.push((read(&delivery), delivery.attempt));
    }
    ends.sort_unstable();
    let expected = [("0", 2), ("1", 1), ("2", 1), ("3", 1), ("4", 1)];
    assert_eq!(ends, expected.map(|(text, attempt)| (text.to_owned(), attempt)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_not_begun_comes_again_as_its_first_attempt() {
    with_broker(async |broker| stop_with_messages(broker).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_not_begun_comes_again_from_a_quorum_queue_too() {
    with_broker(async |broker| {
        broker.change(|settings| settings.quorum_queues = true);
        stop_with_messages(broker).await;
    })
    .await;
}

fn durable() -> QueueDeclareOptions {
    QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    }
}

/// The broker compares the arguments of a queue that exists.
#[tokio::test]
async fn dead_letters_of_quorum_queues_can_be_inspected_at_will() {
    with_broker(async |broker| {
        broker.change(|settings| settings.quorum_queues = true);
        let bus = broker.bus().await;
        let name = broker.name("s");
        let (handler, _) = rejecting();
        let _subscription = bus.on("a", &name, handler).await.unwrap();
        let letters = format!("{}.dlq", broker.queue(&name));
        let limit = AMQPValue::LongInt(i32::MAX);
        let arguments = table([("x-queue-type", long("quorum")), ("x-delivery-limit", limit)]);
        let channel = broker.channel().await;
        let declared = channel.queue_declare(letters.into(), durable(), arguments);
        declared.await.unwrap();
        bus.publish("a", text("x").into()).await.unwrap();
        until("it is a dead letter", async || {
            bus.dead_letters(9).await.unwrap().len() == 1
        })
        .await;
        for _ in 0..30 {
            assert_eq!(bus.dead_letters(9).await.unwrap().len(), 1);
        }
    })
    .await;
}

#[tokio::test]
async fn a_quorum_queue_of_dead_letters_without_a_limit_is_used_as_it_is() {
    with_broker(async |broker| {
        broker.change(|settings| settings.quorum_queues = true);
        let bus = broker.bus().await;
        let name = broker.name("s");
        let letters = format!("{}.dlq", broker.queue(&name));
        let channel = broker.channel().await;
        let arguments = table([("x-queue-type", long("quorum"))]);
        let declared = channel.queue_declare(letters.as_str().into(), durable(), arguments);
        declared.await.unwrap();
        let (handler, _) = rejecting();
        let _subscription = bus.on("a", &name, handler).await.unwrap();
        bus.publish("a", text("x").into()).await.unwrap();
        until("it is a dead letter", async || {
            bus.dead_letters(9).await.unwrap().len() == 1
        })
        .await;
        let limit = AMQPValue::LongInt(i32::MAX);
        let arguments = table([("x-queue-type", long("quorum")), ("x-delivery-limit", limit)]);
        let declared = channel.queue_declare(letters.into(), durable(), arguments).await;
        assert!(declared.is_err(), "the queue has no limit");
    })
    .await;
}
