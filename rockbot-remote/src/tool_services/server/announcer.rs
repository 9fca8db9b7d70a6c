//! The task that announces a service as long as it runs.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::messaging::{
    Bus, BusError, Delivery, DeliveryHandler, Disposition, SubscribeOptions, Subscription, TopicPattern,
};
use rockbot_core::{IdSource as _, RandomIds};
use tokio::sync::Notify;
use tokio::time;
use tokio_util::task::AbortOnDropHandle;

use crate::tool_services::announcement::{self, Announced, Announcement, INTERVAL};

/// Maximum time to withdraw the announcements at the end.
const GOODBYE_TIME: Duration = Duration::from_secs(5);

/// The announcements of a running service. Dropping it ends them; agents then forget the service
/// when its lease is over.
#[derive(Debug)]
pub(super) struct Announcer {
    bus: Arc<dyn Bus>,
    topic: Arc<str>,
    instance: String,
    task: AbortOnDropHandle<()>,
    _wanted: Subscription,
}

impl Announcer {
    /// Announces at once, then at an interval and whenever an agent asks.
    pub(super) async fn start(announced: Announced, bus: Arc<dyn Bus>) -> Result<Self, BusError> {
        let queue = announcement::queue().map_err(|error| BusError::Provider {
            context: "tools cannot be announced".to_owned(),
            source: error.into(),
        })?;
        let topic = Arc::<str>::from(queue.topic());
        let instance = RandomIds.next_id();
        let asked = Arc::new(Notify::new());
        let handler = Arc::new(Asked(Arc::clone(&asked)));
        let name = format!("{topic}.{instance}");
        let options = SubscribeOptions::new().ephemeral();
        let subscribing = bus.subscribe(TopicPattern::new(&topic)?, &name, options, handler);
        let wanted = subscribing.await?;
        let task = announce(announced, Arc::clone(&bus), Arc::clone(&topic), instance.clone(), asked);
        Ok(Self {
            bus,
            topic,
            instance,
            task: AbortOnDropHandle::new(tokio::spawn(task)),
            _wanted: wanted,
        })
    }

    /// Ends the announcements and tells agents.
    pub(super) async fn withdraw(self) {
        self.task.abort();
        let withdrawal = Arc::new(Announced::withdrawal(&self.instance));
        let telling = time::timeout(GOODBYE_TIME, self.bus.publish(&self.topic, withdrawal));
        if !matches!(telling.await, Ok(Ok(_))) {
            tracing::warn!("the tools could not be withdrawn; agents forget them when the lease is over");
        }
    }
}

async fn announce(announced: Announced, bus: Arc<dyn Bus>, topic: Arc<str>, instance: String, asked: Arc<Notify>) {
    loop {
        let message = Arc::new(announced.message(&instance));
        if let Err(error) = bus.publish(&topic, message).await {
            if matches!(error, BusError::Closed) {
                return;
            }
            tracing::warn!(%error, "the tools could not be announced; trying again");
        }
        // Whichever comes first: the interval, or an agent that asks.
        let _ = time::timeout(INTERVAL, asked.notified()).await;
    }
}

/// The handler of messages on the queue of announcements; only the messages of asking agents
/// matter here.
struct Asked(Arc<Notify>);

#[async_trait]
impl DeliveryHandler for Asked {
    async fn handle(&self, delivery: Delivery) -> Disposition {
        if let Some(Announcement::Wanted) = Announcement::parse(&delivery.envelope.body) {
            self.0.notify_one();
        }
        Disposition::Ack
    }
}
