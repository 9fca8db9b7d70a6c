//! The side of a worker: announcements of its tools, heartbeats, and the withdrawal.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::messaging::lease::heartbeat_interval;
use rockbot_core::messaging::{
    Bus, BusError, Delivery, Disposition, Message, MessagePublisherExt as _, MessageSubscriberExt as _,
    SubscribeOptions, Subscription,
};
use rockbot_core::tool::{GuideSnapshot, Owner, ToolGuides, ToolRegistration, ToolRegistry};
use rockbot_core::{AgentIdentity, ToolName};
use serde::Serialize;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::wire::{AnnouncedGuide, DISCOVER_TOPIC, ToolsAnnounced, ToolsWanted, ToolsWithdrawn, WorkerHeartbeat};

/// Maximum time that a host waits for the withdrawal of its tools when it stops; the lease ends
/// them otherwise.
const WITHDRAWAL_TIME: Duration = Duration::from_secs(1);

/// A host's announcements of its own tools, without the tools that only its own models use.
#[derive(Clone)]
pub(crate) struct Announcer {
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) identity: AgentIdentity,
    /// The topic of the calls that the host takes.
    pub(crate) topic: String,
    pub(crate) lease: Duration,
    pub(crate) registry: Arc<dyn ToolRegistry>,
    pub(crate) owner: Owner,
    pub(crate) guides: Arc<ToolGuides>,
    /// The tools that the host added for its own models.
    pub(crate) hidden: HashSet<ToolName>,
}

/// The running task of an announcer. Dropping it ends the announcements without a withdrawal.
#[derive(Debug)]
pub(crate) struct Announcing {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// The state of a running announcer.
struct Announcements {
    of: Announcer,
    revision: u64,
    tools: Vec<ToolRegistration>,
    guides: GuideSnapshot,
}

impl Announcer {
    /// The topic that the announcer subscribes to.
    pub(crate) const TOPIC: &str = DISCOVER_TOPIC;

    /// Announces the tools, now and whenever they change or an agent asks, until the task is stopped.
    pub(crate) async fn start(self) -> Result<Announcing, BusError> {
        let stop = CancellationToken::new();
        let asked = Arc::new(Notify::new());
        let questions = self.listen(&asked).await?;
        let announcements = Announcements {
            tools: self.tools(),
            guides: self.guides.snapshot(),
            of: self,
            revision: 1,
        };
        let task = tokio::spawn(announcements.run(questions, asked, stop.clone()));
        Ok(Announcing { stop, task })
    }

    async fn listen(&self, asked: &Arc<Notify>) -> Result<Subscription, BusError> {
        let asked = asked.clone();
        let handler = move |delivery: Delivery| {
            if delivery.envelope.message_type == ToolsWanted::TYPE {
                asked.notify_one();
            }
            async { Disposition::Ack }
        };
        let name = format!(
            "{}.{}.{DISCOVER_TOPIC}",
            self.identity.name(),
            self.identity.instance_id()
        );
        let options = SubscribeOptions::new().ephemeral();
        self.bus.on_with(DISCOVER_TOPIC, &name, options, handler).await
    }

    /// Returns the announced tools. Tools that need an approval are no use to others, since no
    /// grant crosses a bus.
    fn tools(&self) -> Vec<ToolRegistration> {
        let snapshot = self.registry.snapshot();
        let own = snapshot.entries().iter().filter(|entry| *entry.owner() == self.owner);
        let registrations = own.map(|entry| entry.registration());
        let is_announced = |registration: &&ToolRegistration| {
            let hints = &registration.hints;
            !hints.needs_approval && !hints.reads_guides && !self.hidden.contains(&registration.name)
        };
        registrations.filter(is_announced).cloned().collect()
    }

    fn lease_ms(&self) -> u64 {
        u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX)
    }

    async fn publish<M: Message + Serialize + Sync>(&self, message: &M) {
        // An agent that misses it learns of the tools by the next heartbeat.
        if let Err(error) = self.bus.send(self.identity.name(), message).await {
            tracing::warn!(%error, "the tools of this worker could not be announced; trying again");
        }
    }
}

impl Announcements {
    async fn run(mut self, _questions: Subscription, asked: Arc<Notify>, stop: CancellationToken) {
        let mut generations = self.of.registry.watch();
        let announcing = self.announce_until_dropped(&mut generations, &asked);
        let _ = stop.run_until_cancelled(announcing).await;
        let withdrawn = ToolsWithdrawn {
            worker: self.of.identity.name().to_string(),
            instance: self.of.identity.instance_id().to_string(),
        };
        self.of.publish(&withdrawn).await;
    }

    async fn announce_until_dropped(&mut self, generations: &mut watch::Receiver<u64>, asked: &Notify) {
        let mut heartbeats = interval(heartbeat_interval(self.of.lease));
        heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        heartbeats.tick().await;
        self.announce().await;
        loop {
            tokio::select! {
                Ok(()) = generations.changed() => {
                    if self.refresh() {
                        self.announce().await;
                    }
                }
                () = asked.notified() => {
                    self.refresh();
                    self.announce().await;
                }
                // Guides have no watch: their changes are announced in place of the next heartbeat.
                _ = heartbeats.tick() => if self.refresh() { self.announce().await } else { self.beat().await },
            }
        }
    }

    /// Takes the present tools and guides, and returns `true` if they differ from the announced
    /// tools and guides.
    fn refresh(&mut self) -> bool {
        let tools = self.of.tools();
        let guides = self.of.guides.snapshot();
        let has_changed = tools != self.tools || !Arc::ptr_eq(&guides, &self.guides);
        if has_changed {
            (self.tools, self.guides) = (tools, guides);
            self.revision += 1;
        }
        has_changed
    }

    async fn announce(&self) {
        let guides = self.guides.values().map(|guide| AnnouncedGuide {
            name: guide.name().to_owned(),
            summary: guide.summary().to_owned(),
            document: guide.document().into_owned(),
        });
        let announcement = ToolsAnnounced {
            worker: self.of.identity.name().to_string(),
            instance: self.of.identity.instance_id().to_string(),
            revision: self.revision,
            lease_ms: self.of.lease_ms(),
            topic: self.of.topic.clone(),
            tools: self.tools.clone(),
            guides: guides.collect(),
        };
        self.of.publish(&announcement).await;
    }

    async fn beat(&self) {
        let heartbeat = WorkerHeartbeat {
            worker: self.of.identity.name().to_string(),
            instance: self.of.identity.instance_id().to_string(),
            revision: self.revision,
            lease_ms: self.of.lease_ms(),
        };
        self.of.publish(&heartbeat).await;
    }
}

impl Announcing {
    /// Withdraws the tools, so that agents drop them before the worker takes no further calls.
    pub(crate) async fn end(mut self) {
        self.stop.cancel();
        let _ = timeout(WITHDRAWAL_TIME, &mut self.task).await;
    }
}

impl Drop for Announcing {
    fn drop(&mut self) {
        self.task.abort();
    }
}
