//! Connections that are cut and come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rockbot_core::messaging::{
    Bus as _, BusError, Delivery, Disposition, MessagePublisher as _, MessageSubscriberExt as _, Reach, RequestClient,
    SubscribeOptions,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time;

use super::broker::{TestBroker, inbox, read, text, until, with_broker};
use super::proxy::Proxy;
use crate::rabbitmq::{RabbitMqBus, RabbitMqSettings};

/// Connects a bus through a proxy.
pub(super) async fn behind_proxy(broker: &TestBroker) -> (Arc<RabbitMqBus>, Proxy) {
    behind_proxy_of(broker, |_| {}).await
}

/// Connects a bus with a maximum size of frames of 8192 bytes.
pub(super) async fn with_small_frames(broker: &TestBroker) -> (Arc<RabbitMqBus>, Proxy) {
    behind_proxy_of(broker, |proxy| proxy.propose_max_frame(8192)).await
}

async fn behind_proxy_of(broker: &TestBroker, prepare: impl FnOnce(&Proxy)) -> (Arc<RabbitMqBus>, Proxy) {
    let mut settings = broker.settings();
    let proxy = Proxy::start(&settings.host_name, settings.port).await;
    prepare(&proxy);
    (settings.host_name, settings.port) = ("127.0.0.1".to_owned(), proxy.port);
    (broker.bus_with(settings).await, proxy)
}

/// A subscriber that counts warnings of the bus.
#[derive(Clone, Default)]
struct Warnings(Arc<AtomicUsize>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("rockbot") && *metadata.level() <= tracing::Level::WARN
    }

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

// On one thread the supervisor finds the link closed and its session ended at the same time.
#[tokio::test]
async fn closing_a_bus_is_no_loss_of_its_connection() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    with_broker(async |broker| {
        let bus = broker.bus_with(broker.settings()).await;
        let (seen, _inbox) = inbox();
        let _subscription = bus.on("a.*", &broker.name("s"), seen).await.unwrap();
        assert_eq!(bus.close(Duration::from_secs(1)).await.unfinished, 0);
        tokio::task::yield_now().await;
    })
    .await;
    assert_eq!(warnings.0.load(Ordering::Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_connection_comes_back_with_one_consumer() {
    with_broker(async |broker| {
        let (bus, proxy) = behind_proxy(broker).await;
        let (seen, mut inbox) = inbox();
        let name = broker.name("s");
        let _subscription = bus.on("a.*", &name, seen).await.unwrap();
        for number in 0..5 {
            proxy.cut();
            let sent = bus.publish("a.b", text(&number.to_string()).into()).await.unwrap();
            assert_eq!(sent, Reach::Subscribers);
            // A message whose confirm was cut off may come twice.
            while read(&inbox.next().await) != number.to_string() {}
        }
        let queue = broker.queue(&name);
        until("one consumer is left", async || broker.counts(&queue).await.1 == 1).await;
        assert!(proxy.connections() >= 2, "{}", proxy.connections());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_confirmed_is_sent_again_under_its_id() {
    with_broker(async |broker| {
        let (bus, proxy) = behind_proxy(broker).await;
        let (seen, mut inbox) = inbox();
        let _subscription = broker.bus().await.on("a", &broker.name("s"), seen).await.unwrap();
        proxy.cut_at_confirm();
        let sent = Arc::new(text("x"));
        assert_eq!(bus.publish("a", Arc::clone(&sent)).await.unwrap(), Reach::Subscribers);
        assert!(!proxy.waits_for_confirm());
        // The broker had the first copy, and got a second one: the id and the attempt tell the receiver.
        for attempt in [1, 2] {
            let delivery = inbox.next().await;
            assert_eq!((delivery.envelope, delivery.attempt), (Arc::clone(&sent), attempt));
        }
    })
    .await;
}

/// A message that was not sent yet when its connection ended is no repetition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waited_for_a_connection_is_a_first_copy() {
    with_broker(async |broker| {
        let (bus, proxy) = behind_proxy(broker).await;
        let (seen, mut inbox) = inbox();
        let _subscription = broker.bus().await.on("a", &broker.name("s"), seen).await.unwrap();
        proxy.refuse(true);
        proxy.cut();
        until("the connection is lost", async || {
            bus.link().session(time::Instant::now()).await.is_err()
        })
        .await;
        let publishing = Arc::clone(&bus);
        let waiting = text("x");
        let sending = tokio::spawn(async move { publishing.publish("a", waiting.into()).await });
        proxy.refuse(false);
        assert_eq!(sending.await.unwrap().unwrap(), Reach::Subscribers);
        assert_eq!(inbox.next().await.attempt, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_nothing_that_was_confirmed_is_lost() {
    with_broker(async |broker| {
        let (bus, proxy) = behind_proxy(broker).await;
        let (seen, mut inbox) = inbox();
        let options = SubscribeOptions::new().with_concurrency(4);
        let _subscription = bus.on_with("a", &broker.name("s"), options, seen).await.unwrap();
        let mut publishers = JoinSet::new();
        for publisher in 0..4 {
            let bus = Arc::clone(&bus);
            publishers.spawn(async move {
                for number in 0..100 {
                    bus.publish("a", text(&format!("{publisher}-{number}")).into())
                        .await
                        .unwrap();
                }
            });
        }
        for _ in 0..3 {
            time::sleep(Duration::from_millis(100)).await;
            proxy.cut();
        }
        while let Some(ended) = publishers.join_next().await {
            ended.unwrap();
        }
        let mut missing: std::collections::HashSet<_> = (0..4)
            .flat_map(|publisher| (0..100).map(move |number| format!("{publisher}-{number}")))
            .collect();
        while !missing.is_empty() {
            missing.remove(&read(&inbox.next().await));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_ends_after_its_connection_is_not_run_again() {
    with_broker(async |broker| {
        let (bus, proxy) = behind_proxy(broker).await;
        let runs = Arc::new(AtomicUsize::new(0));
        let gate = Arc::new(Semaphore::new(0));
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
        let name = broker.name("s");
        let options = SubscribeOptions::new().with_concurrency(4);
        let _subscription = bus.on_with("a", &name, options, handler).await.unwrap();
        bus.publish("a", text("x").into()).await.unwrap();
        until("the handler runs", async || runs.load(Ordering::SeqCst) == 1).await;
        proxy.cut();
        let queue = broker.queue(&name);
        until("the queue is consumed again", async || {
            proxy.connections() == 2 && broker.counts(&queue).await.1 == 1
        })
        .await;
        gate.add_permits(10);
        let report = bus.close(Duration::from_secs(10)).await;
        assert_eq!((report.unfinished, runs.load(Ordering::SeqCst)), (0, 1));
        assert_eq!(broker.counts(&queue).await, (0, 0));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishing_fails_when_the_broker_stays_away() {
    with_broker(async |broker| {
        broker.change(|settings| settings.publish_wait = Duration::from_millis(500));
        let (bus, proxy) = behind_proxy(broker).await;
        proxy.refuse(true);
        proxy.cut();
        let failed = bus.publish("a", text("x").into()).await;
        assert!(matches!(failed, Err(BusError::Provider { .. })), "{failed:?}");
        proxy.refuse(false);
        until("the bus is back", async || {
            bus.publish("a", text("x").into()).await.is_ok()
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_survives_a_cut_if_its_queue_does() {
    with_broker(async |broker| {
        broker.change(|settings| settings.reply_queue_expiry = Some(Duration::from_secs(60)));
        let (asker, proxy) = behind_proxy(broker).await;
        let server = broker.bus().await;
        let replier = Arc::clone(&server);
        let proxy = Arc::new(proxy);
        let cutter = Arc::clone(&proxy);
        let handler = move |delivery: Delivery| {
            let bus = Arc::clone(&replier);
            let proxy = Arc::clone(&cutter);
            async move {
                proxy.refuse(true);
                proxy.cut();
                let topic = delivery.envelope.reply_to.clone().unwrap();
                let reply = text("42").in_reply_to(&delivery.envelope);
                let sent = bus.publish(&topic, Arc::new(reply)).await.unwrap();
                assert_eq!(sent, Reach::Subscribers);
                proxy.refuse(false);
                Disposition::Ack
            }
        };
        let _subscription = server.on("ask", &broker.name("s"), handler).await.unwrap();
        let client = RequestClient::new(asker, "asker").with_time_limit(super::broker::PATIENCE);
        let answer = client.call("ask", text("6 * 7")).await.unwrap();
        assert_eq!(&answer.body[..], b"42");
    })
    .await;
}

/// A body is spread over frames. Headers are not, and would end the connection of all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_of_small_frames_takes_large_bodies_and_no_large_headers() {
    with_broker(async |broker| {
        let (bus, proxy) = with_small_frames(broker).await;
        let (seen, mut inbox) = inbox();
        let _subscription = bus.on("a", &broker.name("s"), seen).await.unwrap();
        let sent = Arc::new(text(&"x".repeat(100_000)).with_header("key", "y".repeat(3000)));
        assert_eq!(bus.publish("a", Arc::clone(&sent)).await.unwrap(), Reach::Subscribers);
        assert_eq!(inbox.next().await.envelope, sent);
        let large = text("x").with_header("key", "y".repeat(9000));
        let refused = bus.publish("a", large.into()).await.unwrap_err();
        let BusError::PropertyTooLong { size, limit, .. } = refused else {
            panic!("{refused:?}")
        };
        assert!(size > 9000 && limit == 8192, "{size} {limit}");
        bus.publish("a", text("after").into()).await.unwrap();
        assert_eq!(
            (read(&inbox.next().await), proxy.connections()),
            ("after".to_owned(), 1)
        );
    })
    .await;
}

#[tokio::test]
async fn an_unreachable_broker_is_an_error_without_the_password() {
    let settings = RabbitMqSettings::from_url("amqp://agent:s3cret@127.0.0.1:9").unwrap();
    let error = RabbitMqBus::connect(settings).await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    let shown = format!("{error} {cause} {error:?}");
    assert!(shown.contains("127.0.0.1:9") && !shown.contains("s3cret"), "{shown}");
}
