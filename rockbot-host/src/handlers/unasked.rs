//! Announcements on their way to the interfaces of a bus.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::AgentIdentity;
use rockbot_core::messaging::{BusError, MessageEnvelope, MessagePublisher, Reach};
use rockbot_core::support::loggable;
use rockbot_core::turn::Announcement;
use rockbot_core::user::{AgentReply, UserProxyTopics};
use tokio::time::sleep;

use crate::announcements::Taken;
use crate::engine::TurnEngine;
use crate::media_library::MediaLibrary;

/// Pause before the first further attempt to reach an interface. It doubles up to [`MAX_PAUSE`].
const PAUSE: Duration = Duration::from_secs(1);

/// Maximum pause between attempts.
const MAX_PAUSE: Duration = Duration::from_secs(15);

/// A publisher of announcements under the topic that all interfaces read.
#[derive(Debug, Clone)]
pub(crate) struct BusAnnouncer {
    pub(crate) publisher: Arc<dyn MessagePublisher>,
    pub(crate) identity: AgentIdentity,
    pub(crate) media: Arc<MediaLibrary>,
    /// Maximum size of the media that an announcement carries.
    pub(crate) max_media_bytes: u64,
}

impl BusAnnouncer {
    /// Delivers announcements to principals without a reader in this process, until the host stops.
    /// An announcement that no interface takes waits.
    pub(crate) async fn run(self, engine: Arc<TurnEngine>) {
        let mut added = engine.announcements.changes();
        let mut pause = PAUSE;
        while !engine.closing.is_cancelled() {
            added.mark_unchanged();
            let all_delivered = self.deliver_all(&engine).await;
            let waiting = async {
                match all_delivered {
                    // The sender lives as long as the list.
                    true => drop(added.changed().await),
                    false => sleep(pause).await,
                }
            };
            engine.closing.run_until_cancelled(waiting).await;
            pause = if all_delivered { PAUSE } else { MAX_PAUSE.min(pause * 2) };
        }
    }

    /// Delivers the waiting announcements. Returns `false` if no interface took an announcement.
    async fn deliver_all(&self, engine: &TurnEngine) -> bool {
        while let Some(taken) = engine.take_announcement(None).await {
            match self.publish(&taken).await {
                Ok(Reach::NoSubscribers) => return false,
                Ok(_) => taken.delivered().await,
                Err(error) => {
                    tracing::warn!(run = %taken.id(), error = %loggable(&error.to_string()), "announcement not sent");
                    if error.retry_helps() || matches!(error, BusError::Closed) {
                        return false;
                    }
                    // It can never be sent. The conversation has it.
                    taken.delivered().await;
                }
            }
        }
        true
    }

    async fn publish(&self, taken: &Taken) -> Result<Reach, BusError> {
        let mut announcement = taken.announcement.clone();
        let principal = &announcement.principal;
        let content = &mut announcement.content;
        if content.has_stored_media() {
            self.media.load_within(principal, content, self.max_media_bytes).await;
        }
        let envelope = self.envelope(taken, &announcement)?;
        self.publisher.publish(UserProxyTopics::USER_RESPONSE, envelope).await
    }

    /// Creates the envelope. Its message id is the id of the announcement, so receivers deduplicate
    /// an announcement that is sent twice.
    fn envelope(&self, taken: &Taken, announcement: &Announcement) -> Result<Arc<MessageEnvelope>, BusError> {
        let data = serde_json::to_value(&taken.announcement).ok();
        let reply = AgentReply::new(
            announcement.session.clone(),
            &**self.identity.name(),
            announcement.content.clone(),
        )
        .with_structured_data(data)
        .with_content_type(AgentReply::ANNOUNCEMENT);
        let envelope = MessageEnvelope::of(&reply)?
            .with_id(taken.id().as_str())
            .with_source(Arc::clone(self.identity.name()));
        Ok(Arc::new(envelope))
    }
}
