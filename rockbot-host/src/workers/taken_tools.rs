//! The task that keeps the tools of workers in an agent's registry.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::context::Trust;
use rockbot_core::messaging::{
    Bus, Delivery, Disposition, Message, MessageEnvelope, MessagePublisherExt as _, MessageSubscriberExt as _,
    SubscribeOptions, Subscription,
};
use rockbot_core::support::loggable;
use rockbot_core::tool::{Owner, ToolRegistry};
use rockbot_core::{AgentIdentity, BoxError, MessageId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::directory::{Change, Directory};
use super::options::Options;
use super::questions::Questions;
use super::remote_worker::{Caller, replace, source};
use super::wire::{ANNOUNCE_TOPIC, ToolCallCancelled, ToolsAnnounced, ToolsWanted, ToolsWithdrawn, WorkerHeartbeat};

/// The task of the subsystem.
pub(super) struct TakenTools {
    pub(super) bus: Arc<dyn Bus>,
    pub(super) registry: Arc<dyn ToolRegistry>,
    pub(super) identity: AgentIdentity,
    pub(super) caller: Caller,
    pub(super) options: Options,
    pub(super) directory: Directory,
    /// The owners of the registered tools, by worker.
    pub(super) owners: BTreeMap<String, Owner>,
    /// The names of the workers that are there, for callers that ask.
    pub(super) present: Arc<Mutex<BTreeSet<String>>>,
}

impl TakenTools {
    /// Takes and drops tools until `stop` is cancelled.
    pub(super) async fn run(
        mut self,
        _announcements: Subscription,
        mut messages: mpsc::Receiver<Arc<MessageEnvelope>>,
        mut given_up: mpsc::Receiver<MessageId>,
        stop: CancellationToken,
    ) {
        stop.run_until_cancelled(self.publish(&ToolsWanted {})).await;
        let mut questions = Questions::asked_at(Instant::now());
        loop {
            let expiry = self.directory.next_expiry();
            let question = questions.due();
            tokio::select! {
                () = stop.cancelled() => break,
                Some(message) = messages.recv() => {
                    let change = self.take(&message);
                    self.apply(change, &mut questions);
                }
                Some(message_id) = given_up.recv() => {
                    stop.run_until_cancelled(self.publish(&ToolCallCancelled { message_id })).await;
                }
                () = reached(question) => {
                    stop.run_until_cancelled(self.publish(&ToolsWanted {})).await;
                    questions.asked(Instant::now());
                }
                () = reached(expiry) => {
                    while let Some(change) = self.directory.expire(Instant::now()) {
                        self.apply(change, &mut questions);
                    }
                }
            }
        }
        for (worker, owner) in std::mem::take(&mut self.owners) {
            replace(&*self.registry, &owner, &worker, Vec::new());
        }
    }

    /// Takes a message of a worker, and returns its consequence.
    fn take(&mut self, message: &MessageEnvelope) -> Change {
        let now = Instant::now();
        match &*message.message_type {
            ToolsAnnounced::TYPE => match read::<ToolsAnnounced>(message) {
                Some(announced) if self.takes(&announced.worker, &announced.instance) => {
                    self.directory.announced(announced, now)
                }
                _ => Change::None,
            },
            WorkerHeartbeat::TYPE => match read::<WorkerHeartbeat>(message) {
                Some(heartbeat) if self.takes(&heartbeat.worker, &heartbeat.instance) => {
                    self.directory.heartbeat(&heartbeat, now)
                }
                _ => Change::None,
            },
            ToolsWithdrawn::TYPE => {
                read(message).map_or(Change::None, |withdrawn| self.directory.withdrawn(&withdrawn))
            }
            _ => Change::None,
        }
    }

    /// Returns `true` if the tools of a worker are wanted: not the host's own, which it has announced
    /// itself.
    fn takes(&self, worker: &str, instance: &str) -> bool {
        let is_wanted = self.options.only.is_empty() || self.options.only.contains(worker);
        is_wanted && instance != &**self.identity.instance_id()
    }

    fn apply(&mut self, change: Change, questions: &mut Questions) {
        match change {
            Change::None => {}
            Change::Ask => questions.want(Instant::now()),
            Change::Offered(offer) => {
                questions.answered();
                self.offer(&offer);
            }
            Change::Gone(worker) => self.remove(&worker),
            Change::Refused(why) => tracing::warn!(why, "the tools of a worker are not taken"),
        }
    }

    fn offer(&mut self, offer: &ToolsAnnounced) {
        let worker = &offer.worker;
        let is_vouched = self.options.vouched.contains(worker);
        let tools = self.caller.tools_of(offer, is_vouched).unwrap_or_else(|why| {
            tracing::warn!(worker = %loggable(worker), why, "the tools of a worker are not taken");
            Vec::new()
        });
        tracing::info!(worker = %loggable(worker), tools = tools.len(), "a worker has announced its tools");
        let owner = self.owners.entry(worker.clone());
        let owner = owner.or_insert_with(|| Owner::new(&source(worker)));
        replace(&*self.registry, owner, worker, tools);
        self.present().insert(worker.clone());
    }

    fn remove(&mut self, worker: &str) {
        if let Some(owner) = self.owners.remove(worker) {
            tracing::info!(worker = %loggable(worker), "the tools of a worker are gone");
            replace(&*self.registry, &owner, worker, Vec::new());
        }
        self.present().remove(worker);
    }

    fn present(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn publish<M: Message + Serialize + Sync>(&self, message: &M) {
        if let Err(error) = self.bus.send(self.identity.name(), message).await {
            tracing::warn!(%error, message_type = M::TYPE, "workers could not be reached; trying again");
        }
    }
}

/// Waits for a moment; for ever if it is `None`.
async fn reached(moment: Option<Instant>) {
    match moment {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Subscribes to the announcements. Each agent gets all of them, in a subscription of its own
/// that ends with it.
pub(super) async fn listen(
    bus: &dyn Bus,
    identity: &AgentIdentity,
    sender: mpsc::Sender<Arc<MessageEnvelope>>,
) -> Result<Subscription, BoxError> {
    let handler = move |delivery: Delivery| {
        let sender = sender.clone();
        async move {
            if delivery.trust == Trust::Untrusted {
                return Disposition::dead_letter("tools are not taken from an unauthenticated channel");
            }
            // After the end of the subsystem it is of no interest.
            let _ = sender.send(delivery.envelope).await;
            Disposition::Ack
        }
    };
    let name = format!("{}.{}.{ANNOUNCE_TOPIC}", identity.name(), identity.instance_id());
    let options = SubscribeOptions::new().ephemeral();
    Ok(bus.on_with(ANNOUNCE_TOPIC, &name, options, handler).await?)
}

/// Reads a message of another program; `None` if its content does not fit its type.
fn read<M: Message + DeserializeOwned>(message: &MessageEnvelope) -> Option<M> {
    let read = message.payload();
    read.inspect_err(
        |error| tracing::warn!(%error, source = %loggable(&message.source), "an announcement is unreadable"),
    )
    .ok()
}
