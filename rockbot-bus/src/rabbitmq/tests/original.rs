//! One broker shared with a process of the original: its properties, headers and queues.

use std::collections::BTreeMap;

use lapin::BasicProperties;
use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use rockbot_core::Timestamp;
use rockbot_core::messaging::{
    DeadLetterReason, DeadLetters as _, MessageEnvelope, MessagePublisher as _, MessageSubscriberExt as _,
};

use super::broker::{TestBroker, inbox, long, read, table, text, until, with_broker};
use crate::rabbitmq::mapping;

/// Declares a subscription as the original does: byte for byte the arguments that it passes.
async fn subscribe_as_original(broker: &TestBroker, name: &str, topic: &str) -> lapin::Channel {
    let settings = broker.settings();
    let channel = broker.channel().await;
    let (queue, letters) = (broker.queue(name), format!("{}.dlq", broker.queue(name)));
    let durable = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    let dead_letters = settings.dead_letter_exchange_name.as_str();
    let arguments = table([
        ("x-dead-letter-exchange", long(dead_letters)),
        ("x-dead-letter-routing-key", long(topic)),
    ]);
    channel
        .queue_declare(letters.as_str().into(), durable, FieldTable::default())
        .await
        .unwrap();
    channel
        .queue_declare(queue.as_str().into(), durable, arguments)
        .await
        .unwrap();
    for (queue, exchange) in [
        (letters.as_str(), dead_letters),
        (queue.as_str(), settings.exchange_name.as_str()),
    ] {
        let options = QueueBindOptions::default();
        let none = FieldTable::default();
        channel
            .queue_bind(queue.into(), exchange.into(), topic.into(), options, none)
            .await
            .unwrap();
    }
    channel
}

#[tokio::test]
async fn the_original_reads_what_is_published() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let name = broker.name("theirs");
        let channel = subscribe_as_original(broker, &name, "user.message").await;
        let sent = MessageEnvelope::new("RockBot.UserProxy.UserMessage", r#"{"content":"hi"}"#)
            .with_id("0123456789abcdef0123456789abcdef")
            .with_timestamp(Timestamp::from_millis(1_700_000_000_123))
            .with_source("cli")
            .with_reply_to("user.response")
            .with_header("rb-content-trust", "user-input")
            .with_header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        bus.publish("user.message", sent.into()).await.unwrap();
        let got = channel
            .basic_get(broker.queue(&name).into(), BasicGetOptions::default())
            .await
            .unwrap()
            .unwrap();
        let expected = BasicProperties::default()
            .with_message_id("0123456789abcdef0123456789abcdef".into())
            .with_type("RockBot.UserProxy.UserMessage".into())
            .with_correlation_id("".into())
            .with_reply_to("user.response".into())
            .with_timestamp(1_700_000_000)
            .with_content_type("application/json".into())
            .with_delivery_mode(2)
            .with_headers(table([
                ("rb-source", long("cli")),
                ("rb-rb-content-trust", long("user-input")),
                (
                    "rb-traceparent",
                    long("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
                ),
                ("x-rockbot-timestamp", AMQPValue::LongLongInt(1_700_000_000_123)),
            ]));
        assert_eq!(got.delivery.properties, expected);
        assert_eq!(got.delivery.data, br#"{"content":"hi"}"#);
        got.delivery.acker.ack(BasicAckOptions::default()).await.unwrap();
        let _ = bus.delete_subscription(&name).await;
    })
    .await;
}

#[tokio::test]
async fn what_the_original_publishes_is_read() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let (seen, mut inbox) = inbox();
        let _subscription = bus.on("user.*", &broker.name("ours"), seen).await.unwrap();
        let properties = BasicProperties::default()
            .with_message_id("id".into())
            .with_type("RockBot.UserProxy.AgentReply".into())
            .with_correlation_id("".into())
            .with_reply_to("".into())
            .with_timestamp(1_700_000_000)
            .with_headers(table([
                ("rb-source", long("agent")),
                ("rb-destination", long("cli")),
                ("rb-rb-timeout-ms", long("500")),
                ("rb-count", AMQPValue::LongInt(3)),
                ("other", long("ignored")),
                // A publisher's claims about the way of a message count for nothing.
                ("x-rockbot-topic", long("admin")),
                ("x-rockbot-attempts", AMQPValue::LongInt(7)),
            ]));
        let exchange = broker.settings().exchange_name;
        let options = BasicPublishOptions::default();
        let channel = broker.channel().await;
        let sent = channel.basic_publish(exchange.into(), "user.response".into(), options, b"{}", properties);
        sent.await.unwrap();
        let delivery = inbox.next().await;
        assert_eq!((&*delivery.topic, delivery.attempt), ("user.response", 1));
        let mut expected = MessageEnvelope::new("RockBot.UserProxy.AgentReply", "{}")
            .with_id("id")
            .with_timestamp(Timestamp::from_millis(1_700_000_000_000))
            .with_source("agent")
            .with_destination("cli");
        expected.headers = BTreeMap::from([("rb-timeout-ms".to_owned(), "500".to_owned())]);
        assert_eq!(*delivery.envelope, expected);
    })
    .await;
}

#[tokio::test]
async fn a_queue_of_the_original_is_joined_and_its_dead_letters_are_read() {
    with_broker(async |broker| {
        let bus = broker.bus().await;
        let name = broker.name("shared");
        let channel = subscribe_as_original(broker, &name, "task").await;
        let sent = std::sync::Arc::new(text("bad"));
        bus.publish("task", std::sync::Arc::clone(&sent)).await.unwrap();
        // The original rejects it, and the broker moves it.
        let got = channel
            .basic_get(broker.queue(&name).into(), BasicGetOptions::default())
            .await
            .unwrap()
            .unwrap();
        got.delivery.acker.nack(BasicNackOptions::default()).await.unwrap();
        let (seen, mut inbox) = inbox();
        let _subscription = bus.on("task", &name, seen).await.unwrap();
        bus.publish("task", text("good").into()).await.unwrap();
        assert_eq!(read(&inbox.next().await), "good");
        until("the dead letter is there", async || {
            bus.dead_letters(9).await.unwrap().len() == 1
        })
        .await;
        let letter = bus.take_dead_letter(&name, &sent.message_id).await.unwrap().unwrap();
        assert_eq!((&*letter.subscription, &*letter.topic), (name.as_str(), "task"));
        assert_eq!((letter.reason, letter.attempts), (DeadLetterReason::Rejected, 1));
        assert_eq!(letter.envelope, sent);
        assert_eq!(bus.dead_letters(9).await.unwrap(), []);
    })
    .await;
}

#[test]
fn properties_that_the_protocol_cannot_carry_are_refused() {
    let long = "x".repeat(256);
    let refused = [
        text("").with_id(long.as_str()),
        text("").with_correlation_id(long.as_str()),
        text("").with_header(long.as_str(), ""),
        text("").with_header("large", "x".repeat(70_000)),
    ];
    for envelope in refused {
        let error = mapping::properties(&envelope, true).unwrap_err();
        assert!(
            error.to_string().contains("shorten it") && !error.retry_helps(),
            "{error}"
        );
    }
}
