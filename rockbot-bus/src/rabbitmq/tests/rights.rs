//! A user of the broker with the rights of a person's program (`deploy/rabbitmq/rights.json`):
//! what it can ask for, and what it cannot forge, read or destroy.

use std::sync::Arc;

use lapin::options::{
    BasicConsumeOptions, BasicPublishOptions, ConfirmSelectOptions, ExchangeDeleteOptions, QueueBindOptions,
    QueueDeclareOptions, QueueDeleteOptions, QueuePurgeOptions,
};
use lapin::protocol::AMQPSoftError;
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use rockbot_core::messaging::{
    BusError, MessagePublisher as _, MessageSubscriberExt as _, RequestClient, Subscription,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::broker::{inbox, replies, text};
use super::node::Node;
use crate::rabbitmq::error::refusal;
use crate::rabbitmq::{RabbitMqBus, RabbitMqSettings};

/// Returns the rights of `deploy/`, with users whose passwords are their names.
fn definitions() -> Value {
    let rights = include_str!("../../../../deploy/rabbitmq/rights.json");
    let mut definitions: Value = serde_json::from_str(rights).unwrap();
    definitions["vhosts"] = json!([{"name": "/"}]);
    definitions["users"] = ["admin", "agent", "person"]
        .map(|name| json!({"name": name, "password": name, "tags": ""}))
        .into();
    let all = json!({"user": "admin", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"});
    definitions["permissions"].as_array_mut().unwrap().push(all);
    definitions
}

async fn bus(node: &Node, user: &str) -> Arc<RabbitMqBus> {
    let settings = RabbitMqSettings::from_url(&node.url_of(user)).unwrap();
    Arc::new(RabbitMqBus::connect(settings).await.unwrap())
}

/// A program that speaks to the broker without the bus.
struct Attacker(Connection);

impl Attacker {
    async fn connect(node: &Node) -> Self {
        let connected = Connection::connect(&node.url_of("person"), ConnectionProperties::default()).await;
        Self(connected.unwrap())
    }

    /// Checks that the broker refuses an operation for want of a right.
    async fn is_refused<T>(&self, what: &str, operation: impl AsyncFnOnce(Channel) -> lapin::Result<T>) {
        let channel = self.0.create_channel().await.unwrap();
        let done = operation(channel).await;
        let refused = done.err().and_then(|error| refusal(&error));
        assert_eq!(refused, Some(AMQPSoftError::ACCESSREFUSED), "{what}");
    }

    async fn cannot_publish(&self, exchange: &str, key: &str) {
        let publish = async |channel: Channel| {
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            let options = BasicPublishOptions::default();
            let sent = channel.basic_publish(exchange.into(), key.into(), options, b"{}", BasicProperties::default());
            sent.await?.await
        };
        self.is_refused(&format!("publish {key} to `{exchange}`"), publish)
            .await;
    }

    async fn cannot_read(&self, queue: &str) {
        let consume = async |channel: Channel| {
            let options = BasicConsumeOptions::default();
            channel
                .basic_consume(queue.into(), "".into(), options, FieldTable::default())
                .await
        };
        self.is_refused(&format!("read {queue}"), consume).await;
        let purge = async |channel: Channel| channel.queue_purge(queue.into(), QueuePurgeOptions::default()).await;
        self.is_refused(&format!("purge {queue}"), purge).await;
        let delete = async |channel: Channel| channel.queue_delete(queue.into(), QueueDeleteOptions::default()).await;
        self.is_refused(&format!("delete {queue}"), delete).await;
    }

    /// Checks that a queue for replies cannot be bound to another topic.
    async fn cannot_listen(&self, key: &str) {
        let bind = async |channel: Channel| {
            let queue = "rockbot.user.response.person.ears";
            let options = QueueDeclareOptions::default();
            channel
                .queue_declare(queue.into(), options, FieldTable::default())
                .await?;
            let options = QueueBindOptions::default();
            channel
                .queue_bind(
                    queue.into(),
                    "rockbot".into(),
                    key.into(),
                    options,
                    FieldTable::default(),
                )
                .await
        };
        self.is_refused(&format!("listen to {key}"), bind).await;
    }

    async fn cannot_delete(&self, exchange: &str) {
        let delete = async |channel: Channel| {
            channel
                .exchange_delete(exchange.into(), ExchangeDeleteOptions::default())
                .await
        };
        self.is_refused(&format!("delete `{exchange}`"), delete).await;
    }
}

/// Starts an agent that answers each message of a person.
async fn agent(bus: &Arc<RabbitMqBus>) -> Subscription {
    bus.on("user.message", "agent-user", replies(bus)).await.unwrap()
}

/// Checks that publishing under `topic` is refused, and that the error tells why.
async fn check_forgery(person: &RabbitMqBus, topic: &str) {
    let forged = person.publish(topic, text("forged").into()).await;
    let Err(BusError::Provider { source, .. }) = forged else {
        panic!("{topic}: {forged:?}")
    };
    assert!(source.to_string().contains("ACCESS_REFUSED"), "{topic}: {source}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_s_program_can_ask_and_forge_nothing() {
    let Some(node) = Node::start_with(&definitions(), "admin").await else {
        return;
    };
    let host = bus(&node, "agent").await;
    let _agent = agent(&host).await;
    let (seen, mut forged) = inbox();
    let _worker = host.on("tool.#", "worker", seen).await.unwrap();
    let person = bus(&node, "person").await;
    let client = Arc::new(RequestClient::new(person.clone(), "person").with_reply_topic("user.response.person.1"));

    // Forgeries fail at once, and disturb no message beside them.
    let mut questions = JoinSet::new();
    for number in 0..100 {
        let client = Arc::clone(&client);
        questions.spawn(async move {
            let answer = client.call("user.message", text(&number.to_string())).await.unwrap();
            assert_eq!(answer.body, format!("re: {number}"));
        });
    }
    for topic in [
        "tool.invoke.worker",
        "tool.announce",
        "tool.result.agent",
        "user.response.other.1",
        "script.invoke",
    ] {
        check_forgery(&person, topic).await;
    }
    questions.join_all().await;

    // Neither does a program that speaks to the broker by itself get further.
    let attacker = Attacker::connect(&node).await;
    for (exchange, key) in [
        ("rockbot", "tool.invoke.worker"),
        ("rockbot.dlx", "user.message"),
        ("rockbot-retry", "rockbot.worker"),
        ("", "rockbot.worker"),
    ] {
        attacker.cannot_publish(exchange, key).await;
    }
    for queue in ["rockbot.worker", "rockbot.agent-user", "rockbot.agent-user.dlq"] {
        attacker.cannot_read(queue).await;
    }
    for exchange in ["rockbot", "rockbot.dlx", "rockbot-retry"] {
        attacker.cannot_delete(exchange).await;
    }
    for key in ["#", "user.message", "user.response.other.1"] {
        attacker.cannot_listen(key).await;
    }
    assert_eq!(forged.rest(), [""; 0]);
    assert_eq!(
        client.call("user.message", text("last")).await.unwrap().body,
        "re: last"
    );
}
