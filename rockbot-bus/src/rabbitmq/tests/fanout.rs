//! The layout of fanout exchanges, beside a client that declares them by hand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lapin::options::{
    BasicGetOptions, BasicPublishOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, ExchangeKind};
use rockbot_core::messaging::{
    BusError, Delivery, Disposition, MessageEnvelope, MessagePublisher as _, MessageSubscriberExt as _, Reach,
    RetryPolicy, SubscribeOptions,
};

use super::broker::{TestBroker, inbox, read, text, with_broker};
use crate::rabbitmq::{ExchangeLayout, RabbitMqBus};

async fn bus(broker: &TestBroker) -> Arc<RabbitMqBus> {
    let settings = broker.settings().with_exchange_layout(ExchangeLayout::Fanout);
    broker.bus_with(settings).await
}

/// Declares a topic and a queue of it as TrustGraph does, and binds them.
async fn declare_by_hand(channel: &Channel, topic: &str, queue: &str) {
    let options = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    let none = FieldTable::default;
    let exchange = channel.exchange_declare(topic.into(), ExchangeKind::Fanout, options, none());
    exchange.await.unwrap();
    let declared = channel.queue_declare(queue.into(), QueueDeclareOptions::default(), none());
    declared.await.unwrap();
    let bound = channel.queue_bind(
        queue.into(),
        topic.into(),
        queue.into(),
        QueueBindOptions::default(),
        none(),
    );
    bound.await.unwrap();
}

#[tokio::test]
async fn exchanges_queues_and_headers_are_shared_with_other_clients() {
    with_broker(async |broker| {
        let bus = bus(broker).await;
        let channel = broker.channel().await;
        let topic = broker.name("request.joke");
        let queue = broker.name("request.joke.service-request");
        declare_by_hand(&channel, &topic, &queue).await;
        let sent = MessageEnvelope::new("ToolServiceRequest", "{}").with_header("id", "7");
        assert_eq!(
            bus.publish(&topic, Arc::new(sent.clone())).await.unwrap(),
            Reach::Subscribers
        );
        let options = BasicGetOptions { no_ack: true };
        let got = channel
            .basic_get(queue.as_str().into(), options)
            .await
            .unwrap()
            .unwrap();
        let properties = &got.delivery.properties;
        let mut headers = FieldTable::default();
        headers.insert("id".into(), AMQPValue::LongString("7".into()));
        assert_eq!(properties.headers().as_ref(), Some(&headers));
        assert_eq!(
            (*properties.delivery_mode(), got.delivery.routing_key.as_str()),
            (Some(1), "")
        );
        assert_eq!(properties.content_type().as_ref().unwrap().as_str(), "application/json");

        let (seen, mut inbox) = inbox();
        let subscription = bus.on(&topic, &queue, seen).await.unwrap();
        let mut headers = FieldTable::default();
        headers.insert("id".into(), AMQPValue::LongString("8".into()));
        headers.insert("count".into(), AMQPValue::LongInt(3));
        let properties = BasicProperties::default().with_headers(headers);
        let options = BasicPublishOptions::default();
        let sent = channel.basic_publish(topic.as_str().into(), "".into(), options, b"{}", properties);
        sent.await.unwrap();
        let delivery = inbox.next().await;
        assert_eq!((&*delivery.topic, read(&delivery).as_str()), (topic.as_str(), "{}"));
        let expected = [("count", "3"), ("id", "8")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(delivery.envelope.headers, BTreeMap::from(expected));
        subscription.close().await;
        bus.delete_topology().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn each_ephemeral_subscription_gets_a_copy_and_none_is_known_at_once() {
    with_broker(async |broker| {
        let bus = bus(broker).await;
        let topic = broker.name("response.joke");
        let reach = bus.publish(&topic, Arc::new(text("lost"))).await.unwrap();
        assert_eq!(reach, Reach::NoSubscribers);
        let mut inboxes = Vec::new();
        for client in ["a", "b"] {
            let (seen, inbox) = inbox();
            let name = broker.name(&format!("response.joke.{client}"));
            let options = SubscribeOptions::new().ephemeral();
            inboxes.push((bus.on_with(&topic, &name, options, seen).await.unwrap(), inbox));
        }
        bus.publish(&topic, Arc::new(text("hi"))).await.unwrap();
        for (_, inbox) in &mut inboxes {
            assert_eq!(inbox.texts(1).await, ["hi"]);
        }
        for (subscription, _) in inboxes {
            subscription.close().await;
        }
        bus.delete_topology().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_message_that_failed_comes_again_with_its_headers() {
    with_broker(async |broker| {
        let bus = bus(broker).await;
        let topic = broker.name("request.busy");
        let (seen, mut inbox) = inbox();
        let handler = move |delivery: Delivery| {
            let seen = seen.clone();
            async move {
                use rockbot_core::messaging::DeliveryHandler as _;
                match delivery.attempt {
                    1 => Disposition::retry("busy"),
                    _ => seen.handle(delivery).await,
                }
            }
        };
        let retry = RetryPolicy::default().with_first_delay(Duration::from_millis(50));
        let options = SubscribeOptions::new().with_retry(retry);
        let subscription = bus
            .on_with(&topic, &broker.name("busy"), options, handler)
            .await
            .unwrap();
        bus.publish(&topic, Arc::new(text("hi").with_header("id", "7")))
            .await
            .unwrap();
        let delivery = inbox.next().await;
        assert_eq!((delivery.attempt, &*delivery.topic), (2, topic.as_str()));
        assert_eq!(
            delivery.envelope.headers,
            BTreeMap::from([("id".to_owned(), "7".to_owned())])
        );
        subscription.close().await;
        bus.delete_topology().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn wildcards_are_refused() {
    with_broker(async |broker| {
        let bus = bus(broker).await;
        let (seen, _inbox) = inbox();
        let refused = bus.on("a.*", &broker.name("wild"), seen).await;
        assert!(matches!(refused, Err(BusError::Topic(_))), "{refused:?}");
    })
    .await;
}

/// RabbitMQ has no domains: the id of a persistent queue of Pulsar names the same exchange and
/// queue.
#[tokio::test]
async fn a_stated_domain_of_pulsar_does_not_count() {
    with_broker(async |broker| {
        let bus = bus(broker).await;
        let space = broker.name("tg");
        let (seen, mut inbox) = inbox();
        let stated = format!("persistent://{space}/request/joke");
        let subscription = bus.on(&stated, &format!("{stated}.s"), seen).await.unwrap();
        let plain = format!("{space}.request.joke");
        assert_eq!(broker.counts(&format!("{plain}.s")).await, (0, 1));
        for topic in [&plain, &stated] {
            assert_eq!(bus.publish(topic, text("x").into()).await.unwrap(), Reach::Subscribers);
            assert_eq!(&*inbox.next().await.topic, plain);
        }
        subscription.close().await;
        bus.delete_topology().await.unwrap();
    })
    .await;
}
