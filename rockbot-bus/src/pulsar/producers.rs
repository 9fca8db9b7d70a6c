//! The producers of a session: one producer for each topic; the producers that were used least
//! recently are closed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pulsar::producer::Message;
use pulsar::{Error, Producer, ProducerOptions, Pulsar, TokioExecutor};
use tokio::sync::Mutex as FairMutex;

use super::mapping;
use crate::copies::Copies;

/// The client of the broker.
pub(super) type Client = Pulsar<TokioExecutor>;

/// Maximum number of open producers. Reply topics are many, and each is used for a while.
const MAX_OPEN: usize = 256;

/// The producers of one client.
pub(super) struct Producers {
    client: Client,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    by_topic: HashMap<String, Used>,
    /// The number of uses so far; it tells the least recent use.
    uses: u64,
}

/// The producer of a topic once it exists. Its lock keeps messages in order.
type Slot = Arc<FairMutex<Option<Producer<TokioExecutor>>>>;

struct Used {
    slot: Slot,
    at: u64,
}

impl Producers {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            table: Mutex::default(),
        }
    }

    /// Sends a copy of a message and waits until the broker has it.
    pub(super) async fn send(&self, topic: &str, message: &Message, copies: &Copies) -> Result<(), Error> {
        let slot = self.slot(topic);
        let mut open = slot.lock().await;
        let producer = match &mut *open {
            Some(producer) => producer,
            closed => closed.insert(self.open(topic).await?),
        };
        let message = if copies.add() {
            mapping::resent(message.clone())
        } else {
            message.clone()
        };
        let receipt = Box::pin(producer.send_non_blocking(message)).await;
        if receipt.is_err() {
            *open = None;
        }
        drop(open);
        receipt?.await.map(drop)
    }

    async fn open(&self, topic: &str) -> Result<Producer<TokioExecutor>, Error> {
        let options = ProducerOptions {
            block_queue_if_full: true,
            ..ProducerOptions::default()
        };
        // The client's futures are large; boxes keep them out of the futures of handlers.
        let building = self.client.producer().with_topic(topic).with_options(options);
        Box::pin(building.build()).await
    }

    fn slot(&self, topic: &str) -> Slot {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.uses += 1;
        let at = table.uses;
        if let Some(used) = table.by_topic.get_mut(topic) {
            used.at = at;
            return Arc::clone(&used.slot);
        }
        if table.by_topic.len() >= MAX_OPEN {
            let oldest = table.by_topic.iter().min_by_key(|(_, used)| used.at);
            if let Some(oldest) = oldest.map(|(topic, _)| topic.clone()) {
                table.by_topic.remove(&oldest);
            }
        }
        let slot = Slot::default();
        let used = Used {
            slot: Arc::clone(&slot),
            at,
        };
        table.by_topic.insert(topic.to_owned(), used);
        slot
    }
}
