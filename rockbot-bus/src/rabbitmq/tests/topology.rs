//! Queues: their names, their kinds, their end.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rockbot_core::messaging::{
    BusError, Disposition, MessagePublisher as _, MessageSubscriberExt as _, Reach, RetryPolicy, SubscribeOptions,
};

use super::broker::{inbox, text, until, with_broker};
use crate::rabbitmq::topology;

#[tokio::test]
async fn a_topic_without_a_queue_reaches_none() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        assert_eq!(
            bus.publish("nowhere", text("x").into()).await.unwrap(),
            Reach::NoSubscribers
        );
    })
    .await;
}

/// With many messages in flight, each publisher learns what became of its own message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishers_at_once_learn_of_their_own_message() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let (seen, mut inbox) = inbox();
        let _subscription = bus.on("a", &broker.name("s"), seen).await.unwrap();
        let mut publishers = tokio::task::JoinSet::new();
        for number in 0..300 {
            let bus = std::sync::Arc::clone(&bus);
            publishers.spawn(async move {
                let (topic, expected) = match number % 3 {
                    0 => ("nowhere", Reach::NoSubscribers),
                    _ => ("a", Reach::Subscribers),
                };
                assert_eq!(bus.publish(topic, text("x").into()).await.unwrap(), expected);
            });
        }
        while let Some(ended) = publishers.join_next().await {
            ended.unwrap();
        }
        assert_eq!(inbox.texts(200).await.len(), 200);
    })
    .await;
}

/// A message waits for its place among many, and a later one of the same conversation finds one free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_sent_in_the_order_in_which_they_were_begun() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let (seen, mut inbox) = inbox();
        let _subscription = bus.on("a", &broker.name("s"), seen).await.unwrap();
        let texts: Vec<_> = (0..1000).map(|number| number.to_string()).collect();
        let mut begun = FuturesUnordered::new();
        for number in &texts {
            begun.push(bus.publish("a", text(number).into()));
            let _ = futures_util::poll!(begun.next());
            tokio::task::yield_now().await;
        }
        assert!(begun.all(async |reach| reach.is_ok()).await);
        assert_eq!(inbox.texts(texts.len()).await, texts);
    })
    .await;
}

/// The broker refuses a message by closing its channel; only its own publisher learns of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_message_fails_no_other() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let (seen, mut inbox) = inbox();
        let name = broker.name("s");
        let _subscription = bus.on("a", &name, seen).await.unwrap();
        let mut publishers = tokio::task::JoinSet::new();
        for number in 0..100 {
            let bus = std::sync::Arc::clone(&bus);
            publishers.spawn(async move { bus.publish("a", text(&number.to_string()).into()).await.unwrap() });
        }
        let publisher = &bus.shared.publisher;
        let foreign = lapin::BasicProperties::default().with_user_id("other".into());
        let refused = publisher.to_queue(&broker.queue(&name), &"x".into(), &foreign).await;
        assert!(matches!(refused, Err(BusError::Provider { .. })), "{refused:?}");
        while let Some(reach) = publishers.join_next().await {
            assert_eq!(reach.unwrap(), Reach::Subscribers);
        }
        // A message whose confirm was lost with the channel may come twice.
        let mut missing: std::collections::BTreeSet<_> = (0..100).map(|number| number.to_string()).collect();
        while !missing.is_empty() {
            let text = inbox.texts(1).await.remove(0);
            assert_ne!(text, "x");
            missing.remove(&text);
        }
    })
    .await;
}

#[tokio::test]
async fn another_process_cannot_give_a_name_another_meaning() {
    with_broker(async |broker| {
        let first = broker.bus().await;
        let second = broker.bus().await;
        let name = broker.name("s");
        let (seen, _inbox) = inbox();
        let _first = first.on("a", &name, seen.clone()).await.unwrap();
        let refused = second.on("b", &name, seen).await;
        assert!(matches!(refused, Err(BusError::Conflict(taken)) if taken == name));
    })
    .await;
}

#[tokio::test]
async fn the_queue_of_an_ephemeral_subscription_is_exclusive() {
    with_broker(async |broker| {
        let first = broker.bus().await;
        let second = broker.bus().await;
        let name = broker.name("s");
        let (seen, _inbox) = inbox();
        let options = SubscribeOptions::new().ephemeral();
        let _first = first.on_with("a", &name, options.clone(), seen.clone()).await.unwrap();
        let refused = second.on_with("a", &name, options, seen).await;
        assert!(matches!(refused, Err(BusError::Conflict(taken)) if taken == name));
    })
    .await;
}

/// Retries of all subscriptions share the queues of their delays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retry_queues_are_bounded() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let mut subscriptions = Vec::new();
        let mut inboxes = Vec::new();
        for number in 0..5 {
            let (seen, inbox) = inbox();
            let handler = move |delivery: rockbot_core::messaging::Delivery| {
                let seen = seen.clone();
                async move {
                    use rockbot_core::messaging::DeliveryHandler as _;
                    match delivery.attempt {
                        1..=3 => Disposition::retry("not yet"),
                        _ => seen.handle(delivery).await,
                    }
                }
            };
            // 65 to 260 milliseconds, and their doubles: two levels of retry queues below 512.
            let policy = RetryPolicy::default().with_first_delay(Duration::from_millis(65 + number));
            let policy = policy.with_max_delay(Duration::from_millis(120));
            let options = SubscribeOptions::new().with_retry(policy);
            let name = broker.name(&format!("s{number}"));
            subscriptions.push(bus.on_with("a", &name, options, handler).await.unwrap());
            inboxes.push(inbox);
        }
        bus.publish("a", text("x").into()).await.unwrap();
        for inbox in &mut inboxes {
            assert_eq!(inbox.next().await.attempt, 4);
        }
        let retry = topology::retry_exchange(&broker.settings());
        assert_eq!(broker.counts(&format!("{retry}.128")).await, (0, 0));
        let channel = broker.channel().await;
        let options = lapin::options::QueueDeclareOptions {
            passive: true,
            ..lapin::options::QueueDeclareOptions::default()
        };
        let other = channel
            .queue_declare(format!("{retry}.256").into(), options, Default::default())
            .await;
        assert!(other.is_err(), "one queue serves all these delays");
    })
    .await;
}

#[tokio::test]
async fn a_deleted_queue_is_declared_and_consumed_again() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let (seen, mut inbox) = inbox();
        let name = broker.name("s");
        let _subscription = bus.on("a", &name, seen).await.unwrap();
        let channel = broker.channel().await;
        let queue = broker.queue(&name);
        channel
            .queue_delete(queue.as_str().into(), Default::default())
            .await
            .unwrap();
        until("the queue is back", async || {
            bus.publish("a", text("x").into()).await.unwrap() == Reach::Subscribers
        })
        .await;
        inbox.next().await;
    })
    .await;
}
