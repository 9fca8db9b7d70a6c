//! A broker that is connected and does not answer: each operation ends by its deadline.

use std::error::Error as _;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::messaging::{
    BusError, DeadLetters as _, Disposition, MessagePublisher as _, MessageSubscriberExt as _, PartitionBy, Reach,
    SubscribeOptions, TopicPattern,
};
use tokio_util::sync::CancellationToken;

use super::broker::{TestBroker, inbox, read, text, until, with_broker};
use super::connection::behind_proxy;
use super::proxy::Proxy;
use crate::consumer::SubscriptionSpec;
use crate::rabbitmq::partitions::Share;
use crate::rabbitmq::worker::Worker;
use crate::rabbitmq::{ExchangeLayout, RabbitMqBus};

/// Connects a bus that waits for half a second, through a proxy.
async fn impatient(broker: &TestBroker) -> (Arc<RabbitMqBus>, Proxy) {
    broker.change(|settings| settings.publish_wait = Duration::from_millis(500));
    behind_proxy(broker).await
}

/// Checks that an operation ended since its deadline was over.
fn assert_overdue<T: Debug>(doing: &str, ended: Result<T, BusError>) {
    let error = ended.expect_err(doing);
    let cause = error.source().expect(doing).to_string();
    let is_told = error.to_string().contains(doing);
    assert_eq!((is_told, &*cause), (true, "no answer within 500ms"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_end_by_their_deadline() {
    with_broker(async |broker| {
        let (bus, proxy) = impatient(broker).await;
        let name = broker.name("s");
        let handler = |_| async { Disposition::DeadLetter { reason: "bad".into() } };
        let subscription = bus.on("a", &name, handler).await.unwrap();
        let sent = Arc::new(text("x"));
        bus.publish("a", Arc::clone(&sent)).await.unwrap();
        until("it is a dead letter", async || {
            bus.dead_letters(9).await.unwrap().len() == 1
        })
        .await;

        proxy.stall(true);
        assert_overdue("cannot publish", bus.publish("b", text("y").into()).await);
        assert_overdue("cannot read dead letters", bus.dead_letters(9).await);
        let taken = bus.take_dead_letter(&name, &sent.message_id).await;
        assert_overdue("cannot take a dead letter", taken);
        let properties = lapin::BasicProperties::default();
        let delay = Duration::from_secs(1);
        let publisher = &bus.shared.publisher;
        let postponed = publisher.after(delay, "q", &bytes::Bytes::new(), &properties).await;
        assert_overdue("cannot declare a retry queue", postponed);
        assert_overdue("cannot delete a queue", bus.delete_subscription(&name).await);
        assert_overdue("cannot delete a queue", bus.delete_topology().await);

        proxy.stall(false);
        let taken = bus.take_dead_letter(&name, &sent.message_id).await.unwrap();
        assert_eq!(taken.unwrap().envelope, sent);
        assert_eq!(bus.dead_letters(9).await.unwrap(), []);
        subscription.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fanout_exchange_is_declared_by_its_deadline() {
    with_broker(async |broker| {
        broker.change(|settings| settings.exchange_layout = ExchangeLayout::Fanout);
        let (bus, proxy) = impatient(broker).await;
        let topic = broker.name("topic");
        proxy.stall(true);
        assert_overdue(
            "cannot declare an exchange",
            bus.publish(&topic, text("x").into()).await,
        );
        proxy.stall(false);
        // A busy machine may not manage it within the first half second.
        until("the exchange is declared", async || {
            let reach = bus.publish(&topic, text("x").into()).await;
            matches!(reach, Ok(Reach::NoSubscribers))
        })
        .await;
        bus.delete_topology().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_are_inspected_by_their_deadline() {
    with_broker(async |broker| {
        let (bus, proxy) = impatient(broker).await;
        let spec = SubscriptionSpec {
            name: broker.name("s"),
            pattern: TopicPattern::new("a").unwrap(),
            options: SubscribeOptions::new().with_partition_by(PartitionBy::header("key")),
        };
        let publisher = bus.shared.publisher.clone();
        let closed = CancellationToken::new();
        let handler = Arc::new(|_| async { Disposition::Ack });
        let worker = Arc::new(Worker::new(publisher, &closed, spec, handler));
        proxy.stall(true);
        let balanced = Share::new(&worker).balance().await;
        assert_overdue("cannot inspect the partitions", balanced);
        proxy.stall(false);
    })
    .await;
}

/// A connection that is cut while a letter is taken loses neither the letter nor the bus.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_is_taken_over_a_cut_connection() {
    with_broker(async |broker| {
        let (bus, proxy) = behind_proxy(broker).await;
        let name = broker.name("s");
        let handler = |_| async { Disposition::DeadLetter { reason: "bad".into() } };
        let _subscription = bus.on("a", &name, handler).await.unwrap();
        let sent = Arc::new(text("x"));
        bus.publish("a", Arc::clone(&sent)).await.unwrap();
        until("it is a dead letter", async || {
            bus.dead_letters(9).await.unwrap().len() == 1
        })
        .await;
        proxy.cut();
        let letter = bus.take_dead_letter(&name, &sent.message_id).await.unwrap().unwrap();
        assert_eq!((letter.envelope, &*letter.last_error), (sent, "bad"));
        assert_eq!(bus.dead_letters(9).await.unwrap(), []);
        let (seen, mut inbox) = inbox();
        let _other = bus.on("b", &broker.name("t"), seen).await.unwrap();
        bus.publish("b", text("y").into()).await.unwrap();
        assert_eq!(read(&inbox.next().await), "y");
    })
    .await;
}
