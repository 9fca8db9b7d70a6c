//! Messages and topics on the wire.

use pulsar::proto::{KeyValue, MessageIdData, MessageMetadata};
use rockbot_core::Timestamp;
use rockbot_core::messaging::{BusError, MessageEnvelope, TopicError};

use crate::pulsar::mapping::{self, ATTEMPTS};
use crate::pulsar::{PulsarSettings, TopicLayout, topics};

fn metadata(properties: impl IntoIterator<Item = (String, String)>) -> MessageMetadata {
    let properties = properties.into_iter().map(|(key, value)| KeyValue { key, value });
    MessageMetadata {
        publish_time: 1_700_000_000_001,
        properties: properties.collect(),
        ..MessageMetadata::default()
    }
}

#[test]
fn a_message_is_read_as_it_was_written() {
    let sent = MessageEnvelope::new("test.Text", "x")
        .with_timestamp(Timestamp::from_millis(1_700_000_000_123))
        .with_source("sender")
        .with_destination("receiver")
        .with_reply_to("answers")
        .with_correlation_id("c1")
        .with_header("id", "5")
        .with_header("source", "a header");
    let message = mapping::message(&sent).unwrap();
    assert_eq!(message.properties["id"], "5");
    let arrived = mapping::read(&metadata(message.properties), message.payload, Some("of the broker"));
    assert_eq!(arrived.envelope, sent);
}

/// Other programs send none of our fields.
#[test]
fn a_message_of_another_program_has_the_id_of_the_broker() {
    let properties = [("id".to_owned(), "5".to_owned())];
    let arrived = mapping::read(&metadata(properties), b"{}".to_vec(), Some("1:2"));
    let expected = MessageEnvelope::new("unknown", "{}")
        .with_id("1:2")
        .with_timestamp(Timestamp::from_millis(1_700_000_000_001))
        .with_header("id", "5");
    assert_eq!(arrived.envelope, expected);
    let id = MessageIdData {
        ledger_id: 1,
        entry_id: 2,
        ..MessageIdData::default()
    };
    let kept = mapping::broker_id("persistent://public/default/a", &id);
    assert_eq!(kept.as_deref(), Some("persistent://public/default/a 1:2:-1"));
    assert_eq!(mapping::broker_id("non-persistent://tg/request/a", &id), None);
}

#[test]
fn a_moved_message_has_its_notes() {
    let envelope = MessageEnvelope::new("test.Text", "x");
    let message = mapping::moved(&envelope, &[(ATTEMPTS, "3".to_owned())]);
    let arrived = mapping::read(&metadata(message.properties), message.payload, None);
    assert_eq!((arrived.number(ATTEMPTS), arrived.envelope), (Some(3), envelope));
}

/// The client moves what was delivered before, with the id that it had.
#[test]
fn a_message_that_the_client_moved_has_the_id_it_had() {
    let origin = [
        ("REAL_TOPIC", "persistent://public/default/a"),
        ("ORIGIN_MESSAGE_ID", "1:2:-1"),
    ];
    let metadata = metadata(origin.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(
        mapping::origin(&metadata).as_deref(),
        Some("persistent://public/default/a 1:2:-1")
    );
    assert!(mapping::read(&metadata, Vec::new(), None).envelope.headers.is_empty());
}

#[test]
fn a_header_with_a_name_of_the_bus_is_refused() {
    let envelope = MessageEnvelope::new("test.Text", "x").with_header("rockbot-attempts", "0");
    let refused = mapping::message(&envelope);
    assert!(matches!(refused, Err(BusError::Provider { .. })), "{refused:?}");
}

#[test]
fn topics_have_names_in_either_layout() {
    let settings = PulsarSettings::new();
    let topic = |topic| settings.pulsar_topic(topic).unwrap();
    assert_eq!(topic("user.message"), "persistent://public/default/user.message");
    assert_eq!(topic("a/b%\u{e9}"), "persistent://public/default/a%2Fb%25%C3%A9");
    let refused = settings.pulsar_topic("a.*");
    assert!(
        matches!(refused, Err(BusError::Topic(TopicError::Wildcard(_)))),
        "{refused:?}"
    );

    let settings = settings.with_topic_layout(TopicLayout::TrustGraph);
    for (topic, expected) in [
        ("tg.request.joke", "non-persistent://tg/request/joke"),
        ("tg.response.default:joke", "non-persistent://tg/response/default:joke"),
        ("tg.flow.a.b", "persistent://tg/flow/a.b"),
        ("persistent://tg/request/a.b", "persistent://tg/request/a.b"),
        (
            "mine.notify.tool-descriptors",
            "non-persistent://mine/notify/tool-descriptors",
        ),
    ] {
        assert_eq!(settings.pulsar_topic(topic).unwrap(), expected);
    }
    for topic in ["user.message", "tg.request", "tg.query.joke", "persistent://tg/request"] {
        let refused = settings.pulsar_topic(topic);
        assert!(matches!(refused, Err(BusError::Provider { .. })), "{refused:?}");
    }
}

#[test]
fn subscriptions_have_the_names_of_trustgraph_in_its_layout() {
    let topic = "tg.request.joke";
    let name = "tg.request.joke.joke-service-request";
    let settings = PulsarSettings::new();
    assert_eq!(settings.subscription(topic, name), name);
    let settings = settings.with_topic_layout(TopicLayout::TrustGraph);
    assert_eq!(settings.subscription(topic, name), "joke-service-request");
    assert_eq!(settings.subscription(topic, "other"), "other");
    let stated = "persistent://tg/request/joke";
    let of_stated = format!("{stated}.joke-service-request");
    assert_eq!(settings.subscription(stated, &of_stated), "joke-service-request");
    let beside = topics::beside("non-persistent://tg/request/joke", "joke/service", "RETRY");
    assert_eq!(beside, "persistent://tg/request/joke-joke%2Fservice-RETRY");
}
