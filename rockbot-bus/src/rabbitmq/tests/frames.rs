//! Messages whose headers fill a small frame, and have no room for what the bus adds on another
//! way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lapin::BasicProperties;
use lapin::options::BasicPublishOptions;
use metrics_util::debugging::DebuggingRecorder;
use rockbot_core::messaging::{
    BusError, DeadLetter, DeadLetterReason, DeadLetters as _, Delivery, DeliveryHandler, Disposition,
    MessagePublisher as _, MessageSubscriberExt as _,
};

use super::broker::{inbox, long, read, table, text, until, with_broker};
use super::connection::with_small_frames;
use super::meters::counted;
use crate::rabbitmq::RabbitMqBus;

/// A handler with one answer, and the number of its runs.
fn answering(answer: Disposition) -> (impl DeliveryHandler, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let handler = move |_: Delivery| {
        counted.fetch_add(1, Ordering::SeqCst);
        let answer = answer.clone();
        async { answer }
    };
    (handler, runs)
}

/// Returns the only dead letter, once it is there.
async fn dead_letter(bus: &RabbitMqBus) -> DeadLetter {
    until("it is a dead letter", async || {
        bus.dead_letters(9).await.unwrap().len() == 1
    })
    .await;
    bus.dead_letters(9).await.unwrap().remove(0)
}

/// One thread, since the recorder is that of the thread.
#[tokio::test]
async fn a_dead_letter_leaves_out_the_headers_that_have_no_room() {
    let recorder = DebuggingRecorder::new();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let mut has_broker = false;
    with_broker(async |broker| {
        has_broker = true;
        let (bus, proxy) = with_small_frames(broker).await;
        let reason = "r".repeat(5000);
        let (handler, runs) = answering(Disposition::DeadLetter { reason });
        let name = broker.name("s");
        let _subscription = bus.on("a", &name, handler).await.unwrap();
        let kept = text(&"x".repeat(20_000)).with_header("small", "kept");
        let sent = kept.clone().with_header("large", "y".repeat(7000));
        bus.publish("a", sent.into()).await.unwrap();
        let letter = dead_letter(&bus).await;
        assert_eq!((&*letter.envelope, letter.omitted_headers), (&kept, 1));
        assert_eq!((letter.reason, letter.attempts), (DeadLetterReason::Rejected, 1));
        assert_eq!(letter.last_error, "r".repeat(1024));
        assert_eq!(
            bus.take_dead_letter(&name, &kept.message_id).await.unwrap(),
            Some(letter)
        );
        assert_eq!((runs.load(Ordering::SeqCst), proxy.connections()), (1, 1));
    })
    .await;
    if has_broker {
        assert_eq!(counted(&recorder.snapshotter())["shortened"], 1);
    }
}

#[tokio::test]
async fn a_message_without_room_for_a_retry_becomes_a_dead_letter() {
    with_broker(async |broker| {
        let (bus, proxy) = with_small_frames(broker).await;
        let (handler, runs) = answering(Disposition::retry("not now"));
        let _subscription = bus.on("a", &broker.name("s"), handler).await.unwrap();
        let plain = text("x");
        let with_large = |size| plain.clone().with_header("large", "y".repeat(size));
        let refused = bus.publish("a", with_large(8192).into()).await.unwrap_err();
        let BusError::PropertyTooLong { size, limit, .. } = refused else {
            panic!("{refused:?}")
        };
        // The largest header that the frame has room for.
        bus.publish("a", with_large(8192 + limit - size).into()).await.unwrap();
        let letter = dead_letter(&bus).await;
        assert_eq!((&*letter.envelope, letter.omitted_headers), (&plain, 1));
        assert_eq!((letter.reason, letter.attempts), (DeadLetterReason::Exhausted, 1));
        assert!(
            letter.last_error.starts_with("it cannot be moved: "),
            "{}",
            letter.last_error
        );
        assert_eq!((runs.load(Ordering::SeqCst), proxy.connections()), (1, 1));
    })
    .await;
}

/// A header about the way of a message counts only if a bus can have written it.
#[tokio::test]
async fn a_topic_that_is_none_does_not_count() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let name = broker.name("s");
        let (seen, mut inbox) = inbox();
        let _subscription = bus.on("a", &name, seen).await.unwrap();
        let headers = table([("x-rockbot-topic", long(&"t".repeat(60_000)))]);
        let channel = broker.channel().await;
        let queue = broker.queue(&name);
        let options = BasicPublishOptions::default();
        let properties = BasicProperties::default();
        let properties = properties.with_headers(headers);
        let sent = channel.basic_publish("".into(), queue.as_str().into(), options, b"x", properties);
        sent.await.unwrap();
        let delivery = inbox.next().await;
        assert_eq!((&*delivery.topic, &*read(&delivery)), (&*queue, "x"));
    })
    .await;
}
