//! The conformance suite of [`Bus`] and [`DeadLetters`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Barrier, Semaphore, mpsc};
use tokio::time;

use crate::messaging::{
    Bus, BusError, DeadLetter, DeadLetterReason, DeadLetters, Delivery, DeliveryHandler, Disposition, ErrorReply,
    MessageEnvelope, MessagePublisherExt, MessageSubscriberExt, PartitionBy, Reach, RequestClient, RequestError,
    RetryPolicy, SubscribeOptions, TopicError, headers,
};
use crate::{IdSource as _, RandomIds, Timestamp};

/// Time limit of the suite for an expected event.
const PATIENCE: Duration = Duration::from_secs(10);

/// Checks that the values that `make` creates keep the contract of [`Bus`] and [`DeadLetters`];
/// each on a bus of its own.
///
/// Topics and subscription names are made up for each run, so that a broker can be shared. The
/// suite waits up to ten seconds for what must happen; on a bus without I/O, run it with paused
/// time.
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn bus<B: Bus + DeadLetters>(make: impl AsyncFn() -> Arc<B>) {
    patterns_select_topics(make().await).await;
    bus_of_exact_topics(make).await;
}

/// Checks what [`bus()`] checks, but for wildcards: a bus whose broker does not route by pattern
/// refuses them.
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn bus_of_exact_topics<B: Bus + DeadLetters>(make: impl AsyncFn() -> Arc<B>) {
    a_message_arrives_as_it_was_sent(make().await).await;
    each_name_gets_a_copy_and_shares_it(make().await).await;
    one_at_a_time_means_in_order(make().await).await;
    as_many_at_once_as_the_concurrency_says(make().await).await;
    partitions_are_in_order_and_side_by_side(make().await).await;
    a_failing_message_is_retried_then_kept(make().await).await;
    a_poison_message_blocks_no_other(make().await).await;
    a_rejected_message_is_kept_at_once(make().await).await;
    a_panic_is_a_failure(make().await).await;
    trust_comes_from_the_channel(make().await).await;
    a_name_stands_for_one_pattern(make().await).await;
    what_is_no_topic_is_refused(make().await).await;
    a_stated_domain_does_not_count(make().await).await;
    closing_a_subscription_waits_for_its_handlers(make().await).await;
    closing_the_bus_lets_it_finish(make().await).await;
    closing_the_bus_does_not_wait_for_ever(make().await).await;
    questions_are_answered(make().await).await;
}

/// An envelope arrives complete; the first delivery is attempt 1.
async fn a_message_arrives_as_it_was_sent<B: Bus + DeadLetters>(bus: Arc<B>) {
    let names = Names::new();
    let (seen, mut inbox) = inbox();
    let _subscription = bus
        .on(&names.topic("a.b"), &names.name("s"), seen)
        .await
        .expect(SUBSCRIBED);
    let sent = MessageEnvelope::new("test.Binary", vec![0, 159, 146, 150])
        .with_timestamp(Timestamp::from_millis(1_700_000_000_000))
        .with_source("sender")
        .with_destination("receiver")
        .with_reply_to(names.topic("answers"))
        .with_correlation_id("c1")
        .with_header(headers::TOOL_PROVIDER, "mcp")
        .with_header("source", "a header of the same name as a field");
    publish(&*bus, &names.topic("a.b"), sent.clone()).await;
    let delivery = inbox.next().await;
    assert_eq!(*delivery.envelope, sent);
    assert_eq!((&*delivery.topic, delivery.attempt), (&*names.topic("a.b"), 1));
}

/// `*` is one segment, `#` any number.
async fn patterns_select_topics<B: Bus + DeadLetters>(bus: Arc<B>) {
    let names = Names::new();
    let (one, mut one_inbox) = inbox();
    let (any, mut any_inbox) = inbox();
    let _one = bus
        .on(&names.topic("a.*"), &names.name("one"), one)
        .await
        .expect(SUBSCRIBED);
    let _any = bus
        .on(&names.topic("a.#"), &names.name("any"), any)
        .await
        .expect(SUBSCRIBED);
    for topic in ["a", "b", "a.b.c", "a.b"] {
        publish(&*bus, &names.topic(topic), text(topic)).await;
    }
    assert_eq!(any_inbox.texts(3).await, ["a", "a.b.c", "a.b"]);
    assert_eq!(one_inbox.texts(1).await, ["a.b"]);
}

/// Consumers of one name share its messages; another name gets all of them, too.
async fn each_name_gets_a_copy_and_shares_it<B: Bus + DeadLetters>(bus: Arc<B>) {
    let names = Names::new();
    let (shared, mut shared_inbox) = inbox();
    let (other, mut other_inbox) = inbox();
    let topic = names.topic("t");
    let _first = bus
        .on(&topic, &names.name("shared"), shared.clone())
        .await
        .expect(SUBSCRIBED);
    let _second = bus.on(&topic, &names.name("shared"), shared).await.expect(SUBSCRIBED);
    let _other = bus.on(&topic, &names.name("other"), other).await.expect(SUBSCRIBED);
    let sent: Vec<_> = (0..20).map(|number| format!("{number:02}")).collect();
    for number in &sent {
        publish(&*bus, &topic, text(number)).await;
    }
    let mut received = shared_inbox.texts(20).await;
    received.sort_unstable();
    assert_eq!(received, sent);
    assert_eq!(other_inbox.texts(20).await, sent);
    shared_inbox.stays_empty();
    other_inbox.stays_empty();
}

/// A subscription handles one message at a time by default, in the order in which they were
/// published.
async fn one_at_a_time_means_in_order<B: Bus + DeadLetters>(bus: Arc<B>) {
    let names = Names::new();
    let (seen, mut inbox) = inbox();
    let alone = Arc::new(Semaphore::new(1));
    let handler = move |delivery: Delivery| {
        let seen = seen.clone();
        let alone = Arc::clone(&alone);
        async move {
            let _permit = alone.try_acquire().expect("one message is handled at a time");
            time::sleep(Duration::from_millis(1)).await;
            seen.handle(delivery).await
        }
    };
    let topic = names.topic("t");
    let _subscription = bus.on(&topic, &names.name("s"), handler).await.expect(SUBSCRIBED);
    let sent: Vec<_> = (0..50).map(|number| number.to_string()).collect();
    for number in &sent {
        publish(&*bus, &topic, text(number)).await;
    }
    assert_eq!(inbox.texts(50).await, sent);
}

/// With a concurrency of three, three handlers run at once.
async fn as_many_at_once_as_the_concurrency_says<B: Bus + DeadLetters>(bus: Arc<B>) {
    let names = Names::new();
    let (handler, mut inbox) = meeting(3);
    let options = SubscribeOptions::new().with_concurrency(3);
    let topic = names.topic("t");
    let _subscription = bus
        .on_with(&topic, &names.name("s"), options, handler)
        .await
        .expect(SUBSCRIBED);
    for number in ["0", "1", "2"] {
        publish(&*bus, &topic, text(number)).await;
    }
    let mut met = inbox.texts(3).await;
    met.sort_unstable();
    assert_eq!(met, ["0", "1", "2"]);
}

/// Messages of one partition are handled in order, one at a time, even when one of them has to be
/// repeated; two partitions are handled at once.
async fn partitions_are_in_order_and_side_by_side<B: Bus + DeadLetters>(bus: Arc<B>) {
    let names = Names::new();
    let (handler, mut meetings) = meeting(2);
    let (seen, mut inbox) = inbox();
    let handler = move |delivery: Delivery| {
        let meet = handler.clone();
        let seen = seen.clone();
        async move {
            match (read(&delivery.envelope).as_str(), delivery.attempt) {
                ("a0" | "b0", _) => drop(meet.handle(delivery.clone()).await),
                ("a1", 1) => return Disposition::retry("not yet"),
                _ => {}
            }
            seen.handle(delivery).await
        }
    };
    let options = SubscribeOptions::new()
        .with_concurrency(4)
        .with_partition_by(PartitionBy::partition_key())
        .with_retry(quick_retry(3));
    let topic = names.topic("t");
    let _subscription = bus
        .on_with(&topic, &names.name("s"), options, handler)
        .await
        .expect(SUBSCRIBED);
    for number in 0..10 {
        for key in ["a", "b"] {
            let envelope = text(&format!("{key}{number}")).with_partition_key(key);
            publish(&*bus, &topic, envelope).await;
        }
    }
    meetings.texts(2).await;
    let received = inbox.texts(20).await;
    for key in ["a", "b"] {
        let of_key: Vec<_> = received.iter().filter(|text| text.starts_with(key)).cloned().collect();
        assert_eq!(
            of_key,
            (0..10).map(|number| format!("{key}{number}")).collect::<Vec<_>>()
        );
    }
}

/// A message is delivered again as often as the policy says, then kept with the reason, the
/// number of attempts and the last error.
async fn a_failing_message_is_retried_then_kept<B: Bus + DeadLetters>(bus: Arc<B>) {
    let names = Names::new();
    let (seen, mut inbox) = inbox();
    let handler = move |delivery: Delivery| {
        let seen = seen.clone();
        async move {
            let attempt = delivery.attempt;
            seen.handle(delivery).await;
            Disposition::retry(format_args!("attempt {attempt} failed"))
        }
    };
    let options = SubscribeOptions::new().with_retry(quick_retry(3));
    let topic = names.topic("t");
    let name = names.name("s");
    let _subscription = bus.on_with(&topic, &name, options, handler).await.expect(SUBSCRIBED);
    let sent = text("poison");
    publish(&*bus, &topic, sent.clone()).await;
    for attempt in 1..=3 {
        assert_eq!(inbox.next().await.attempt, attempt);
    }
    let letter = dead_letter(&*bus, &name).await;
    assert_eq!((&*letter.envelope, &*letter.topic), (&sent, &*topic));
    assert_eq!((letter.reason, letter.attempts), (DeadLetterReason::Exhausted, 3));
    assert_eq!(letter.last_error, "attempt 3 failed");
    inbox.stays_empty();
}

/// While a message waits an hour for its next attempt, those behind it are handled.
async fn a_poison_message_blocks_no_other<B: Bus + DeadLetters>(bus: Arc<B>) {
    let names = Names::new();
    let (seen, mut inbox) = inbox();
    let handler = move |delivery: Delivery| {
        let seen = seen.clone();
        async move {
            if read(&delivery.envelope) == "poison" {
                return Disposition::retry("it is poison");
            }
            seen.handle(delivery).await
        }
    };
    let hourly = RetryPolicy {
        first_delay: Duration::from_secs(3600),
        max_delay: Duration::from_secs(3600),
        ..RetryPolicy::default()
    };
    let topic = names.topic("t");
    let options = SubscribeOptions::new().with_retry(hourly);
    let _subscription = bus
        .on_with(&topic, &names.name("s"), options, handler)
        .await
        .expect(SUBSCRIBED);
    for body in ["poison", "1", "poison", "2"] {
        publish(&*bus, &topic, text(body)).await;
    }
    assert_eq!(inbox.texts(2).await, ["1", "2"]);
    let _ = bus.close(Duration::ZERO).await;
}

/// A message that can never be handled becomes a dead letter without another attempt, and can be
/// taken once.
async fn a_rejected_message_is_kept_at_once<B: Bus + DeadLetters>(bus: Arc<B>) {
    let names = Names::new();
    let handler = |_| async { Disposition::dead_letter("it is not an invoice") };
    let topic = names.topic("t");
    let name = names.name("s");
    let _subscription = bus.on(&topic, &name, handler).await.expect(SUBSCRIBED);
    let sent = text("nonsense");
    publish(&*bus, &topic, sent.clone()).await;
    let letter = dead_letter(&*bus, &name).await;
    assert_eq!((letter.reason, letter.attempts), (DeadLetterReason::Rejected, 1));
    assert_eq!(letter.last_error, "it is not an invoice");
    let taken = bus.take_dead_letter(&name, &sent.message_id).await.expect(INSPECTED);
    assert_eq!(taken, Some(letter));
    let taken = bus.take_dead_letter(&name, &sent.message_id).await.expect(INSPECTED);
    assert_eq!(taken, None);
}

/// A handler that panics has failed: it gets the message again, and others after it.
async fn a_panic_is_a_failure<B: Bus + DeadLetters>(bus: Arc<B>) {
    let names = Names::new();
    let (seen, mut inbox) = inbox();
    let handler = move |delivery: Delivery| {
        let seen = seen.clone();
        async move {
            assert_ne!(read(&delivery.envelope), "bad", "as the test wants it");
            seen.handle(delivery).await
        }
    };
    let topic = names.topic("t");
    let name = names.name("s");
    let options = SubscribeOptions::new().with_retry(quick_retry(2));
    let _subscription = bus.on_with(&topic, &name, options, handler).await.expect(SUBSCRIBED);
    publish(&*bus, &topic, text("bad")).await;
    publish(&*bus, &topic, text("good")).await;
    assert_eq!(inbox.texts(1).await, ["good"]);
    let letter = dead_letter(&*bus, &name).await;
    assert_eq!((letter.reason, letter.attempts), (DeadLetterReason::Exhausted, 2));
    assert!(
        letter.last_error.contains("as the test wants it"),
        "{}",
        letter.last_error
    );
}

/// A header that claims more trust changes nothing.
async fn trust_comes_from_the_channel<B: Bus + DeadLetters>(bus: Arc<B>) {
    let names = Names::new();
    let (seen, mut inbox) = inbox();
    let topic = names.topic("t");
    let _subscription = bus.on(&topic, &names.name("s"), seen).await.expect(SUBSCRIBED);
    publish(&*bus, &topic, text("modest")).await;
    publish(
        &*bus,
        &topic,
        text("bold").with_header(headers::CONTENT_TRUST, "system"),
    )
    .await;
    let modest = inbox.next().await;
    let bold = inbox.next().await;
    assert_eq!(modest.trust, bold.trust);
}

/// A second consumer cannot give a name another meaning.
async fn a_name_stands_for_one_pattern<B: Bus + DeadLetters>(bus: Arc<B>) {
    let names = Names::new();
    let (seen, _inbox) = inbox();
    let name = names.name("s");
    let _subscription = bus.on(&names.topic("a"), &name, seen.clone()).await.expect(SUBSCRIBED);
    let other = bus.on(&names.topic("b"), &name, seen).await;
    assert!(matches!(other, Err(BusError::Conflict(taken)) if taken == name));
}

/// Messages are published under one topic of words.
async fn what_is_no_topic_is_refused<B: Bus + DeadLetters>(bus: Arc<B>) {
    for topic in ["", "a..b", "a.*", "#"] {
        let refused = bus.publish(topic, text("x").into()).await;
        let is_topic_error = |error: &BusError| {
            matches!(
                error,
                BusError::Topic(TopicError::EmptySegment(_) | TopicError::Wildcard(_))
            )
        };
        assert!(refused.as_ref().is_err_and(is_topic_error), "{topic}: {refused:?}");
    }
}

/// A topic with a domain of Pulsar is the one without it, for publishers, subscriptions and their
/// names.
async fn a_stated_domain_does_not_count<B: Bus + DeadLetters>(bus: Arc<B>) {
    let names = Names::new();
    let plain = names.topic("request.joke");
    let stated = format!("persistent://{}", plain.replace(".request.", "/request/"));
    let (seen, mut inbox) = inbox();
    // Both are consumers of one subscription, so each message arrives once.
    let _plain = bus
        .on(&plain, &format!("{plain}.s"), seen.clone())
        .await
        .expect(SUBSCRIBED);
    let _stated = bus.on(&stated, &format!("{stated}.s"), seen).await.expect(SUBSCRIBED);
    for topic in [&plain, &stated, &format!("non-{stated}")] {
        publish(&*bus, topic, text(topic)).await;
        let delivery = inbox.next().await;
        assert_eq!(
            (&*delivery.topic, &*delivery.envelope.body),
            (&*plain, topic.as_bytes())
        );
    }
    inbox.stays_empty();
}

/// Closing waits for the handler that runs; afterwards no message arrives.
async fn closing_a_subscription_waits_for_its_handlers<B: Bus + DeadLetters>(bus: Arc<B>) {
    let names = Names::new();
    let (started, mut starts) = inbox();
    let (done, mut inbox) = inbox();
    let handler = move |delivery: Delivery| {
        let started = started.clone();
        let done = done.clone();
        async move {
            started.handle(delivery.clone()).await;
            time::sleep(Duration::from_millis(50)).await;
            done.handle(delivery).await
        }
    };
    let topic = names.topic("t");
    let options = SubscribeOptions::new().ephemeral();
    let subscription = bus
        .on_with(&topic, &names.name("s"), options, handler)
        .await
        .expect(SUBSCRIBED);
    publish(&*bus, &topic, text("1")).await;
    assert_eq!(starts.texts(1).await, ["1"]);
    subscription.close().await;
    assert_eq!(inbox.texts(1).await, ["1"]);
    let reach = bus.publish(&topic, text("2").into()).await.expect(PUBLISHED);
    assert_ne!(reach, Reach::Subscribers);
    starts.stays_empty();
}

/// The backlog of the bus is handled before it closes, and what the handlers publish meanwhile,
/// too; then it takes nothing more.
async fn closing_the_bus_lets_it_finish<B: Bus + DeadLetters>(bus: Arc<B>) {
    let names = Names::new();
    let (seen, mut inbox) = inbox();
    let first = names.topic("first");
    let second = names.topic("second");
    let publisher = Arc::clone(&bus);
    let onward = second.clone();
    let forward = move |delivery: Delivery| {
        let bus = Arc::clone(&publisher);
        let topic = onward.clone();
        async move {
            time::sleep(Duration::from_millis(5)).await;
            match bus.publish(&topic, delivery.envelope).await {
                Ok(_) => Disposition::Ack,
                Err(error) => Disposition::dead_letter(error),
            }
        }
    };
    let subscription = bus.on(&first, &names.name("first"), forward).await.expect(SUBSCRIBED);
    let _second = bus.on(&second, &names.name("second"), seen).await.expect(SUBSCRIBED);
    for number in ["0", "1", "2", "3", "4"] {
        publish(&*bus, &first, text(number)).await;
    }
    let report = bus.close(PATIENCE).await;
    assert_eq!(report.unfinished, 0);
    assert_eq!(inbox.texts(5).await, ["0", "1", "2", "3", "4"]);
    assert!(!subscription.is_active());
    let refused = bus.publish(&first, text("late").into()).await;
    assert!(matches!(refused, Err(BusError::Closed)), "{refused:?}");
    assert_eq!(bus.close(PATIENCE).await.unfinished, 0);
}

/// A handler that never ends is cancelled when the time is up, and its message is accounted for.
async fn closing_the_bus_does_not_wait_for_ever<B: Bus + DeadLetters>(bus: Arc<B>) {
    let names = Names::new();
    let (started, mut starts) = inbox();
    let handler = move |delivery: Delivery| {
        let started = started.clone();
        async move {
            started.handle(delivery).await;
            std::future::pending().await
        }
    };
    let topic = names.topic("t");
    let _subscription = bus.on(&topic, &names.name("s"), handler).await.expect(SUBSCRIBED);
    for number in ["0", "1"] {
        publish(&*bus, &topic, text(number)).await;
    }
    assert_eq!(starts.texts(1).await, ["0"]);
    let closing = time::timeout(PATIENCE, bus.close(Duration::from_millis(100)));
    let report = closing.await.expect("a bus closes when its time is up");
    assert_eq!(report.unfinished, 2);
}

/// A question gets its answer, or the error that was sent instead of one.
async fn questions_are_answered<B: Bus + DeadLetters>(bus: Arc<B>) {
    let names = Names::new();
    let server = Arc::clone(&bus);
    let handler = move |delivery: Delivery| {
        let bus = Arc::clone(&server);
        async move {
            let question = &delivery.envelope;
            let answer = match read(question).as_str() {
                "fail" => MessageEnvelope::of(&refusal()).expect("an error reply can be written"),
                body => text(&format!("re: {body}")),
            };
            match bus.reply(question, answer).await {
                Ok(_) => Disposition::Ack,
                Err(error) => Disposition::retry(error),
            }
        }
    };
    let topic = names.topic("t");
    let options = SubscribeOptions::new().with_concurrency(4);
    let _subscription = bus
        .on_with(&topic, &names.name("s"), options, handler)
        .await
        .expect(SUBSCRIBED);
    let client = RequestClient::new(bus, "asker").with_time_limit(PATIENCE);
    for number in 0..10 {
        let answer = client
            .call(&topic, text(&number.to_string()))
            .await
            .expect("the question is answered");
        assert_eq!(read(&answer), format!("re: {number}"));
    }
    let refused = client.call(&topic, text("fail")).await;
    assert!(
        matches!(&refused, Err(RequestError::Refused(error)) if *error == refusal()),
        "{refused:?}"
    );
    assert_eq!((client.open_requests(), client.stray_replies()), (0, 0));
}

const SUBSCRIBED: &str = "the bus accepts a subscription";
const PUBLISHED: &str = "the bus accepts a message";
const INSPECTED: &str = "dead letters can be inspected";

/// Topics and subscription names that no other run uses.
struct Names(String);

impl Names {
    fn new() -> Self {
        Self(RandomIds.next_id())
    }

    fn topic(&self, rest: &str) -> String {
        format!("conformance.{}.{rest}", self.0)
    }

    fn name(&self, rest: &str) -> String {
        format!("conformance-{}-{rest}", self.0)
    }
}

/// A handler that hands on what it gets, and acknowledges it.
#[derive(Clone)]
struct Seen(mpsc::Sender<Delivery>);

struct Inbox(mpsc::Receiver<Delivery>);

fn inbox() -> (Seen, Inbox) {
    let (sender, receiver) = mpsc::channel(256);
    (Seen(sender), Inbox(receiver))
}

#[async_trait]
impl DeliveryHandler for Seen {
    async fn handle(&self, delivery: Delivery) -> Disposition {
        // The receiver is gone once a behaviour has been checked.
        let _ = self.0.try_send(delivery);
        Disposition::Ack
    }
}

impl Inbox {
    async fn next(&mut self) -> Delivery {
        let next = time::timeout(PATIENCE, self.0.recv()).await;
        next.expect("a delivery comes within ten seconds")
            .expect("the handler is alive")
    }

    async fn texts(&mut self, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        for _ in 0..count {
            texts.push(read(&self.next().await.envelope));
        }
        texts
    }

    fn stays_empty(&mut self) {
        let more = self.0.try_recv().ok();
        assert_eq!(more, None, "nothing else is delivered");
    }
}

/// A handler that is done once `count` of its kind run at the same time.
#[derive(Clone)]
struct Meeting {
    barrier: Arc<Barrier>,
    seen: Seen,
}

fn meeting(count: usize) -> (Meeting, Inbox) {
    let (seen, inbox) = inbox();
    let barrier = Arc::new(Barrier::new(count));
    (Meeting { barrier, seen }, inbox)
}

#[async_trait]
impl DeliveryHandler for Meeting {
    async fn handle(&self, delivery: Delivery) -> Disposition {
        self.barrier.wait().await;
        self.seen.handle(delivery).await
    }
}

async fn publish(bus: &impl Bus, topic: &str, envelope: MessageEnvelope) {
    bus.publish(topic, Arc::new(envelope)).await.expect(PUBLISHED);
}

/// The first dead letter of a subscription, once there is one.
async fn dead_letter(letters: &impl DeadLetters, subscription: &str) -> DeadLetter {
    let search = async {
        loop {
            let all = letters.dead_letters(usize::MAX).await.expect(INSPECTED);
            if let Some(letter) = all.into_iter().find(|letter| *letter.subscription == *subscription) {
                return letter;
            }
            time::sleep(Duration::from_millis(10)).await;
        }
    };
    time::timeout(PATIENCE, search)
        .await
        .expect("a dead letter is kept within ten seconds")
}

fn quick_retry(max_attempts: u32) -> RetryPolicy {
    RetryPolicy {
        max_attempts,
        first_delay: Duration::from_millis(20),
        max_delay: Duration::from_millis(40),
    }
}

fn refusal() -> ErrorReply {
    ErrorReply {
        code: "Busy".to_owned(),
        message: "ask again later".to_owned(),
        is_retryable: true,
    }
}

fn text(body: &str) -> MessageEnvelope {
    MessageEnvelope::new("test.Text", body.to_owned()).with_timestamp(Timestamp::from_millis(1_700_000_000_000))
}

fn read(envelope: &MessageEnvelope) -> String {
    String::from_utf8_lossy(&envelope.body).into_owned()
}
