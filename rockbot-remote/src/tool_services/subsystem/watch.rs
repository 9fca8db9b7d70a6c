//! The task that watches descriptors and keeps the registry of tools up to date.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::context::Trust;
use rockbot_core::messaging::{
    Bus, Delivery, DeliveryHandler, Disposition, SubscribeOptions, Subscription, TopicPattern,
};
use rockbot_core::subsystem::RunningTask;
use rockbot_core::tool::{Owner, RegistryError, Tool, ToolRegistry};
use rockbot_core::{BoxError, IdSource as _, RandomIds, ToolName};
use tokio::sync::mpsc;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::live::LiveTools;
use crate::tool_services::announcement::{self, Announcement};
use crate::tool_services::client::{CallLimits, ServiceClients};
use crate::tool_services::descriptor::DescriptorProblem;
use crate::tool_services::executor;

/// Maximum number of announcements that wait. Further announcements are dropped: a process
/// announces again soon.
const MAX_WAITING: usize = 64;

/// The work of the subsystem, before it starts.
pub(super) struct Watching {
    pub(super) tools: LiveTools,
    pub(super) registry: Arc<dyn ToolRegistry>,
    pub(super) clients: ServiceClients,
    pub(super) limits: CallLimits,
    pub(super) poll_interval: Duration,
}

impl Watching {
    /// Registers the tools and watches their descriptors; announcements are taken from `announced_on`.
    pub(super) async fn start(mut self, announced_on: Option<Arc<dyn Bus>>) -> Result<RunningTask, BoxError> {
        let (sender, announcements) = mpsc::channel(MAX_WAITING);
        let subscription = match announced_on {
            Some(bus) => Some(listen(&*bus, sender).await?),
            None => None,
        };
        self.tools.read()?;
        let mut state = Registered {
            watching: self,
            owner: Owner::new("tool services"),
            reported: BTreeSet::new(),
        };
        state.apply();
        let (running, task) = RunningTask::new(async move |stop| {
            let _announcements = subscription;
            state.watch(announcements, stop).await;
        });
        tokio::spawn(task);
        Ok(running)
    }
}

/// Subscribes to announcements, and asks for the announcements of services that run already.
async fn listen(bus: &dyn Bus, sender: mpsc::Sender<Announcement>) -> Result<Subscription, BoxError> {
    let topic = announcement::queue()?.topic();
    let name = format!("{topic}.{}", RandomIds.next_id());
    let options = SubscribeOptions::new().ephemeral();
    let subscribing = bus.subscribe(TopicPattern::new(&topic)?, &name, options, Arc::new(Listener(sender)));
    let subscription = subscribing.await?;
    bus.publish(&topic, Arc::new(announcement::wanted())).await?;
    Ok(subscription)
}

/// The handler of announcements.
struct Listener(mpsc::Sender<Announcement>);

#[async_trait]
impl DeliveryHandler for Listener {
    async fn handle(&self, delivery: Delivery) -> Disposition {
        if delivery.trust == Trust::Untrusted {
            return Disposition::dead_letter("tools are not taken from an unauthenticated channel");
        }
        match Announcement::parse(&delivery.envelope.body) {
            Some(Announcement::Wanted) => {}
            Some(announcement) => drop(self.0.try_send(announcement)),
            None => tracing::warn!("an announcement of tools cannot be read; it is ignored"),
        }
        Disposition::Ack
    }
}

/// The tools in the registry, and the problems that were reported.
struct Registered {
    watching: Watching,
    owner: Owner,
    reported: BTreeSet<DescriptorProblem>,
}

impl Registered {
    async fn watch(mut self, mut announcements: mpsc::Receiver<Announcement>, stop: CancellationToken) {
        let mut next_look = Instant::now() + self.watching.poll_interval;
        loop {
            let expiry = self.watching.tools.next_expiry();
            let until = expiry.map_or(next_look, |expiry| expiry.min(next_look));
            let has_changed = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                Some(announcement) = announcements.recv() => self.watching.tools.take(announcement),
                () = time::sleep_until(until) => {
                    let expired = self.watching.tools.expire();
                    let looked = until >= next_look && self.look().await;
                    if until >= next_look {
                        next_look = Instant::now() + self.watching.poll_interval;
                    }
                    expired | looked
                }
            };
            if has_changed {
                self.apply();
            }
        }
    }

    /// Reads the files again. Returns `true` if something has changed.
    async fn look(&mut self) -> bool {
        let sources = self.watching.tools.sources.clone();
        if sources.is_empty() {
            return false;
        }
        match tokio::task::spawn_blocking(move || sources.read()).await {
            Ok(Ok(files)) => self.watching.tools.update_files(files),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the folder of descriptors cannot be read; its tools stay as they are");
                false
            }
            Err(error) => {
                tracing::error!(%error, "reading the descriptors broke down; the tools stay as they are");
                false
            }
        }
    }

    /// Replaces the tools in the registry by the tools of the present descriptors.
    fn apply(&mut self) {
        let Watching {
            tools,
            registry,
            clients,
            limits,
            ..
        } = &self.watching;
        let derived = tools.derive();
        let mut problems = derived.problems;
        let mut placed: Vec<_> = derived
            .tools
            .iter()
            .map(|resolved| (resolved.place.clone(), executor::tool(resolved, clients, *limits)))
            .collect();
        while let Err(error) = register(&**registry, &self.owner, &placed) {
            // A tool that cannot be registered must not keep the others out.
            let culprit =
                culprit(&error).and_then(|name| placed.iter().position(|(_, tool)| tool.registration.name == *name));
            let Some(index) = culprit else {
                tracing::error!(%error, "the tools of tool services cannot be registered");
                break;
            };
            let (place, _) = placed.remove(index);
            problems.push(DescriptorProblem::in_field(
                &place,
                "name",
                format!("cannot be used: {error}"),
            ));
        }
        drop(placed);
        clients.prune();
        self.report(problems);
    }

    /// Logs the problems that are new.
    fn report(&mut self, problems: Vec<DescriptorProblem>) {
        let problems: BTreeSet<_> = problems.into_iter().collect();
        for problem in problems.difference(&self.reported) {
            if problem.is_fatal {
                tracing::warn!("a tool descriptor is not used: {problem}")
            } else {
                tracing::warn!("a tool descriptor has a mistake: {problem}")
            }
        }
        self.reported = problems;
    }
}

fn register(registry: &dyn ToolRegistry, owner: &Owner, placed: &[(String, Tool)]) -> Result<(), RegistryError> {
    registry.replace_source(owner, placed.iter().map(|(_, tool)| tool.clone()).collect())
}

/// Returns the name of the tool that an error is about.
fn culprit(error: &RegistryError) -> Option<&ToolName> {
    match error {
        RegistryError::Duplicate(name) | RegistryError::InvalidName(name) | RegistryError::NoDescription(name) => {
            Some(name)
        }
        RegistryError::InvalidSchema { name, .. } | RegistryError::NotOwner { name, .. } => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::context::Trust;
    use rockbot_core::messaging::{Delivery, DeliveryHandler as _, Disposition, MessageEnvelope};
    use tokio::sync::mpsc;

    use super::Listener;

    #[tokio::test]
    async fn announcements_over_an_unauthenticated_channel_are_refused() {
        let (sender, mut taken) = mpsc::channel(1);
        let listener = Listener(sender);
        let announced = |trust| {
            let envelope = MessageEnvelope::new("t", r#"{"instance": "i", "lease-ms": 1000}"#);
            Delivery::new("t", envelope).with_trust(trust)
        };
        let refused = listener.handle(announced(Trust::Untrusted)).await;
        assert!(matches!(refused, Disposition::DeadLetter { .. }), "{refused:?}");
        assert!(taken.try_recv().is_err());
        assert_eq!(listener.handle(announced(Trust::User)).await, Disposition::Ack);
        assert!(taken.try_recv().is_ok());
    }
}
