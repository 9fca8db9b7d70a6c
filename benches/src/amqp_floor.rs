//! The floor of request and reply over RabbitMQ: the client crate alone, with the guarantees of
//! the bus.
//!
//! A durable queue of questions and an exclusive one of answers on a topic exchange, persistent
//! messages, mandatory publishing whose confirms are awaited, manual acknowledgements after the
//! answer is confirmed. No JSON, layers, time limits, attempts, deduplication, dead letters or
//! recovery of the connection.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt as _;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions, QueueBindOptions,
    QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties};
use tokio::sync::oneshot;

/// A topic exchange that every broker has.
const EXCHANGE: &str = "amq.topic";

type Waiting = Arc<Mutex<HashMap<String, oneshot::Sender<usize>>>>;

/// A program that answers, and one that asks it.
#[derive(Debug)]
pub struct AmqpFloor {
    asker: Channel,
    questions: String,
    answers: String,
    waiting: Waiting,
    ids: AtomicU64,
    _connections: [Connection; 2],
}

impl AmqpFloor {
    /// Connects both programs to the broker at `url`, with queues that begin with `name`.
    ///
    /// # Errors
    ///
    /// Returns an error if the broker refuses.
    pub async fn open(url: &str, name: &str, prefetch: u16) -> lapin::Result<Self> {
        let questions = format!("{name}.questions");
        let answers = format!("{name}.answers");
        let [server, asker] = [connect(url).await?, connect(url).await?];
        let from = channel(&server, prefetch).await?;
        let to = channel(&asker, prefetch).await?;
        let durable = QueueDeclareOptions {
            durable: true,
            ..QueueDeclareOptions::default()
        };
        let exclusive = QueueDeclareOptions {
            exclusive: true,
            ..QueueDeclareOptions::default()
        };
        declare(&from, &questions, durable).await?;
        declare(&to, &answers, exclusive).await?;
        let waiting = Waiting::default();
        tokio::spawn(serve(from, questions.clone()));
        tokio::spawn(receive(to.clone(), answers.clone(), Arc::clone(&waiting)));
        Ok(Self {
            asker: to,
            questions,
            answers,
            waiting,
            ids: AtomicU64::new(1),
            _connections: [server, asker],
        })
    }

    /// Asks a question, and returns the length of the answer.
    ///
    /// # Errors
    ///
    /// Returns an error if the broker refuses.
    pub async fn ask(&self, body: &[u8]) -> lapin::Result<usize> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed).to_string();
        let (sender, answer) = oneshot::channel();
        lock(&self.waiting).insert(id.clone(), sender);
        let properties = persistent()
            .with_correlation_id(id.into())
            .with_reply_to(self.answers.as_str().into());
        publish(&self.asker, &self.questions, body, properties).await?;
        Ok(answer.await.unwrap_or_default())
    }

    /// Deletes the queue of questions.
    ///
    /// # Errors
    ///
    /// Returns an error if the broker refuses.
    pub async fn delete(&self) -> lapin::Result<()> {
        let options = QueueDeleteOptions::default();
        self.asker.queue_delete(self.questions.as_str().into(), options).await?;
        Ok(())
    }
}

async fn connect(url: &str) -> lapin::Result<Connection> {
    Connection::connect(url, ConnectionProperties::default()).await
}

async fn channel(connection: &Connection, prefetch: u16) -> lapin::Result<Channel> {
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    channel.basic_qos(prefetch, BasicQosOptions::default()).await?;
    Ok(channel)
}

async fn declare(channel: &Channel, queue: &str, options: QueueDeclareOptions) -> lapin::Result<()> {
    channel
        .queue_declare(queue.into(), options, FieldTable::default())
        .await?;
    let options = QueueBindOptions::default();
    let arguments = FieldTable::default();
    channel
        .queue_bind(queue.into(), EXCHANGE.into(), queue.into(), options, arguments)
        .await
}

fn persistent() -> BasicProperties {
    BasicProperties::default().with_delivery_mode(2)
}

/// Publishes a message and waits until the broker has it.
async fn publish(channel: &Channel, key: &str, body: &[u8], properties: BasicProperties) -> lapin::Result<()> {
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    let confirm = channel
        .basic_publish(EXCHANGE.into(), key.into(), options, body, properties)
        .await?;
    match confirm.await? {
        Confirmation::Ack(None) => {}
        refused => eprintln!("a message was not delivered: {refused:?}"),
    }
    Ok(())
}

/// Answers each question with its own body, and acknowledges it once the answer is confirmed.
async fn serve(channel: Channel, queue: String) -> lapin::Result<()> {
    let options = BasicConsumeOptions::default();
    let mut questions = channel
        .basic_consume(queue.into(), "".into(), options, FieldTable::default())
        .await?;
    while let Some(question) = questions.next().await {
        let question = question?;
        let channel = channel.clone();
        tokio::spawn(async move {
            let asked = &question.properties;
            let (Some(topic), Some(id)) = (asked.reply_to().clone(), asked.correlation_id().clone()) else {
                return;
            };
            let properties = persistent().with_correlation_id(id);
            if publish(&channel, topic.as_str(), &question.data, properties)
                .await
                .is_ok()
            {
                let _ = question.acker.ack(BasicAckOptions::default()).await;
            }
        });
    }
    Ok(())
}

/// Hands each answer to the question that waits for it.
async fn receive(channel: Channel, queue: String, waiting: Waiting) -> lapin::Result<()> {
    let options = BasicConsumeOptions::default();
    let mut answers = channel
        .basic_consume(queue.into(), "".into(), options, FieldTable::default())
        .await?;
    while let Some(answer) = answers.next().await {
        let answer = answer?;
        let id = answer
            .properties
            .correlation_id()
            .as_ref()
            .map(|id| id.as_str().to_owned());
        let sender = id.and_then(|id| lock(&waiting).remove(&id));
        if let Some(sender) = sender {
            let _ = sender.send(answer.data.len());
        }
        answer.acker.ack(BasicAckOptions::default()).await?;
    }
    Ok(())
}

fn lock(waiting: &Waiting) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<usize>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
