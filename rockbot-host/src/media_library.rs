//! Images and files: their bytes are stored once, and everything else refers to them.
//!
//! The engine replaces the bytes of a message when it accepts the message, and the bytes of a
//! tool result before it records the result. So the journal, conversations and replies hold
//! references. Before a model is asked, the references in the request become bytes again, shared
//! by all requests of the turn.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rockbot_core::chat::{ChatMessage, ChatResponse};
use rockbot_core::content::{Content, ContentPart, MediaSource, StoredMedia};
use rockbot_core::store::{MediaStore, StoreError};
use rockbot_core::{Clock, Principal, Timestamp};

/// Default retention of images and files: 30 days.
pub(crate) const MEDIA_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Time between two purges of the store.
const PURGE_INTERVAL: Duration = Duration::from_secs(6 * 60 * 60);

/// The store of a host's media, and their retention.
#[derive(Debug)]
pub(crate) struct MediaLibrary {
    store: Arc<dyn MediaStore>,
    clock: Arc<dyn Clock>,
    retention: Duration,
    /// Time of the next purge, in milliseconds.
    next_purge: AtomicU64,
}

/// Messages of a turn with the bytes of their media, by the messages that refer to them.
#[derive(Default)]
pub(crate) struct ResolvedMessages(Vec<(Arc<ChatMessage>, Arc<ChatMessage>)>);

impl MediaLibrary {
    pub(crate) fn new(store: Arc<dyn MediaStore>, clock: Arc<dyn Clock>, retention: Duration) -> Self {
        Self {
            store,
            clock,
            retention,
            next_purge: AtomicU64::new(0),
        }
    }

    /// Stores the bytes in `content`, and replaces them by references.
    pub(crate) async fn keep(&self, principal: &Principal, content: &mut Content) -> Result<(), StoreError> {
        for part in content.media_mut() {
            if let MediaSource::Bytes(bytes) = &part.source {
                part.source = MediaSource::Stored(self.store.put(principal, bytes.clone()).await?);
            }
        }
        self.purge_if_due().await;
        Ok(())
    }

    /// Stores the bytes in `content` as [`MediaLibrary::keep`] does. Bytes that cannot be stored
    /// become words, since the work that made them must not be lost with them.
    pub(crate) async fn keep_or_describe(&self, principal: &Principal, content: &mut Content) {
        if let Err(error) = self.keep(principal, content).await {
            tracing::warn!(%error, "media store unavailable; images and files of a result are left out");
            for part in content.parts_mut() {
                if matches!(part.as_media(), Some(media) if matches!(media.source, MediaSource::Bytes(_))) {
                    *part = part.describe("it could not be stored");
                }
            }
        }
    }

    /// Stores the images and files of an answer as [`MediaLibrary::keep_or_describe`] does. An answer
    /// without words gets their description, since every part of a turn expects words.
    pub(crate) async fn keep_answer(&self, principal: &Principal, answer: &mut ChatResponse) {
        let content = self.keep_parts(principal, &mut answer.media).await;
        if answer.text.trim().is_empty() && answer.tool_calls.is_empty() {
            answer.text = content.to_string();
        }
    }

    /// Stores the images and files among `parts` as [`MediaLibrary::keep_or_describe`] does, and
    /// returns the parts as content, too.
    pub(crate) async fn keep_parts(&self, principal: &Principal, parts: &mut Vec<ContentPart>) -> Content {
        let mut content = Content::from(std::mem::take(parts));
        self.keep_or_describe(principal, &mut content).await;
        *parts = content.parts().to_vec();
        content
    }

    /// Returns the store.
    pub(crate) fn store(&self) -> &Arc<dyn MediaStore> {
        &self.store
    }

    /// Replaces the messages that refer to stored media by copies with the bytes. A medium that is
    /// missing becomes words for the model.
    pub(crate) async fn resolve(
        &self,
        principal: &Principal,
        messages: &mut [Arc<ChatMessage>],
        resolved: &mut ResolvedMessages,
    ) {
        for message in messages.iter_mut().filter(|message| message.content.has_stored_media()) {
            let known = resolved.0.iter().find(|(from, _)| Arc::ptr_eq(from, message));
            let with_bytes = match known {
                Some((_, known)) => known.clone(),
                None => {
                    let with_bytes = Arc::new(self.with_bytes(principal, message).await);
                    resolved.0.push((message.clone(), with_bytes.clone()));
                    with_bytes
                }
            };
            *message = with_bytes;
        }
    }

    async fn with_bytes(&self, principal: &Principal, message: &ChatMessage) -> ChatMessage {
        let mut message = message.clone();
        self.load(principal, message.content.parts_mut()).await;
        message
    }

    /// Replaces references in `content` by their bytes, in order, as far as they fit into
    /// `max_bytes` together. Larger media stay references, and a missing medium becomes words.
    pub(crate) async fn load_within(&self, principal: &Principal, content: &mut Content, max_bytes: u64) {
        let mut left = max_bytes;
        for part in content.parts_mut() {
            let Some(MediaSource::Stored(stored)) = part.as_media().map(|media| &media.source) else {
                continue;
            };
            if let Some(rest) = left.checked_sub(stored.size) {
                left = rest;
                self.load(principal, std::slice::from_mut(part)).await;
            }
        }
    }

    /// Replaces references to stored media by their bytes. A medium that is missing becomes words.
    pub(crate) async fn load(&self, principal: &Principal, parts: &mut [ContentPart]) {
        for part in parts {
            let Some(media) = part.as_media_mut() else { continue };
            let MediaSource::Stored(StoredMedia { digest, .. }) = media.source else {
                continue;
            };
            match self.store.get(principal, &digest).await {
                Ok(Some(bytes)) => media.source = MediaSource::Bytes(bytes),
                Ok(None) => *part = part.describe("it is not stored any more"),
                Err(error) => {
                    tracing::warn!(%error, "media store unavailable; an image or file is replaced by its description");
                    *part = part.describe("it cannot be read at present");
                }
            }
        }
    }

    /// Removes old media, at most once in six hours. A failure is logged: the next purge tries again.
    async fn purge_if_due(&self) {
        let now = self.clock.now();
        let due = self.next_purge.load(Ordering::Relaxed);
        let next = now.after(PURGE_INTERVAL).as_millis();
        // If several calls come at once, only the call that sets the next time purges.
        let is_mine = self
            .next_purge
            .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed);
        if now.as_millis() < due || is_mine.is_err() {
            return;
        }
        let retention = u64::try_from(self.retention.as_millis()).unwrap_or(u64::MAX);
        let before = Timestamp::from_millis(now.as_millis().saturating_sub(retention));
        match self.store.purge(before).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "media older than their retention removed"),
            Err(error) => tracing::warn!(%error, "old media cannot be removed; the next purge tries again"),
        }
    }
}

impl fmt::Debug for ResolvedMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} messages", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::content::MediaPart;
    use rockbot_core::store::InMemoryMediaStore;
    use rockbot_core::testing::ManualClock;

    use super::*;

    const MONTH: Duration = Duration::from_secs(30 * 24 * 60 * 60);

    #[tokio::test]
    async fn bytes_become_references_and_bytes_again() {
        let clock = ManualClock::default();
        let store = Arc::new(InMemoryMediaStore::new().with_clock(Arc::new(clock.clone())));
        let library = MediaLibrary::new(store, Arc::new(clock.clone()), MONTH);
        let me = Principal::default();
        let asked = Content::from("Who?").with_image(MediaPart::bytes("image/png", vec![1, 2, 3]).with_name("a.png"));
        let mut kept = asked.clone();
        library.keep(&me, &mut kept).await.unwrap();
        assert!(kept.has_stored_media());
        let message = Arc::new(ChatMessage::user(kept));
        let mut resolved = ResolvedMessages::default();
        let mut shown = [ChatMessage::user("hi").into(), message.clone()];
        library.resolve(&me, &mut shown, &mut resolved).await;
        assert_eq!(*shown[1], ChatMessage::user(asked));
        let mut again = [message.clone()];
        library.resolve(&me, &mut again, &mut resolved).await;
        assert!(Arc::ptr_eq(&again[0], &shown[1]), "the same message is resolved once");

        clock.advance(MONTH + Duration::from_secs(1));
        library.keep(&me, &mut Content::from("another message")).await.unwrap();
        let mut late = [message];
        library.resolve(&me, &mut late, &mut ResolvedMessages::default()).await;
        let words = r#"Who?[image "a.png", image/png, 3 bytes: it is not stored any more]"#;
        assert_eq!(late[0].text(), words);
    }
}
