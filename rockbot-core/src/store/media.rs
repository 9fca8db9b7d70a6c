//! The store of images and files: bytes under their digest, referred to from messages.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use super::StoreError;
use crate::content::StoredMedia;
use crate::shared::share;
use crate::{Clock, Digest, Principal, SystemClock, Timestamp};

/// A content-addressed store of images and files.
///
/// The host puts the bytes of a message or a tool result here once, and keeps references to them
/// everywhere else: in the journal, in conversations, in replies. Each principal has media of its
/// own, and equal bytes of one principal are stored once.
#[async_trait]
pub trait MediaStore: fmt::Debug + Send + Sync + 'static {
    /// Stores `bytes` and returns the reference to them. Bytes that are stored already count as new for
    /// [`MediaStore::purge`], within a day.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be written.
    async fn put(&self, principal: &Principal, bytes: Bytes) -> Result<StoredMedia, StoreError>;

    /// Returns the bytes with this digest; `None` if the principal has no such bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    async fn get(&self, principal: &Principal, digest: &Digest) -> Result<Option<Bytes>, StoreError>;

    /// Removes the media of all principals that were put before `before`, and returns how many.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be written.
    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError>;
}

share! {
    MediaStore {
        async put<'a>(principal: &'a Principal, bytes: Bytes) -> Result<StoredMedia, StoreError>;
        async get<'a, 'b>(principal: &'a Principal, digest: &'b Digest) -> Result<Option<Bytes>, StoreError>;
        async purge(before: Timestamp) -> Result<u64, StoreError>;
    }
}

/// Default limit of the media in memory, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// A [`MediaStore`] in memory, lost when the process ends.
///
/// It holds 256 MiB by default and evicts the least recently used media beyond that.
///
/// ```
/// use rockbot_core::Principal;
/// use rockbot_core::store::{InMemoryMediaStore, MediaStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::store::StoreError> {
/// let (store, me) = (InMemoryMediaStore::new(), Principal::default());
/// let stored = store.put(&me, "a picture".into()).await?;
/// assert_eq!(store.get(&me, &stored.digest).await?.as_deref(), Some(&b"a picture"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct InMemoryMediaStore {
    max_bytes: u64,
    clock: Arc<dyn Clock>,
    media: Mutex<MediaState>,
}

#[derive(Default)]
struct MediaState {
    media: HashMap<MediaKey, StoredBytes>,
    /// The media by the number of their last use, the least recently used first.
    uses: BTreeMap<u64, MediaKey>,
    last_use: u64,
    size: u64,
}

type MediaKey = (Principal, Digest);

struct StoredBytes {
    bytes: Bytes,
    put: Timestamp,
    used: u64,
}

impl Default for InMemoryMediaStore {
    fn default() -> Self {
        Self::new()
    }
}

impl InMemoryMediaStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self {
            max_bytes: MAX_BYTES,
            clock: Arc::new(SystemClock),
            media: Mutex::default(),
        }
    }

    /// Sets the maximum size of all media together, in bytes. Default 256 MiB.
    #[must_use]
    pub fn with_max_bytes(mut self, max: u64) -> Self {
        self.max_bytes = max;
        self
    }

    /// Sets the clock that dates the media.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    fn lock(&self) -> MutexGuard<'_, MediaState> {
        // No code that can panic runs under the lock, so a poisoned lock still guards consistent data.
        self.media.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MediaState {
    fn insert(&mut self, key: MediaKey, bytes: Bytes, put: Timestamp) {
        self.remove(&key);
        self.size += bytes.len() as u64;
        self.last_use += 1;
        let used = self.last_use;
        self.uses.insert(used, key.clone());
        self.media.insert(key, StoredBytes { bytes, put, used });
    }

    fn touch(&mut self, key: &MediaKey) -> Option<Bytes> {
        let stored = self.media.get_mut(key)?;
        self.uses.remove(&stored.used);
        self.last_use += 1;
        stored.used = self.last_use;
        self.uses.insert(stored.used, key.clone());
        Some(stored.bytes.clone())
    }

    fn remove(&mut self, key: &MediaKey) {
        if let Some(stored) = self.media.remove(key) {
            self.uses.remove(&stored.used);
            self.size -= stored.bytes.len() as u64;
        }
    }

    /// Evicts the least recently used media until at most `max` bytes are left.
    fn shrink(&mut self, max: u64) {
        while self.size > max
            && let Some(key) = self.uses.first_key_value().map(|(_, key)| key.clone())
        {
            self.remove(&key);
        }
    }
}

impl fmt::Debug for MediaState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} media of {} bytes", self.media.len(), self.size)
    }
}

#[async_trait]
impl MediaStore for InMemoryMediaStore {
    async fn put(&self, principal: &Principal, bytes: Bytes) -> Result<StoredMedia, StoreError> {
        let stored = StoredMedia::of(&bytes);
        let mut state = self.lock();
        state.insert((principal.clone(), stored.digest), bytes, self.clock.now());
        state.shrink(self.max_bytes);
        Ok(stored)
    }

    async fn get(&self, principal: &Principal, digest: &Digest) -> Result<Option<Bytes>, StoreError> {
        Ok(self.lock().touch(&(principal.clone(), *digest)))
    }

    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut state = self.lock();
        let old = state.media.iter().filter(|(_, stored)| stored.put < before);
        let old: Vec<_> = old.map(|(key, _)| key.clone()).collect();
        old.iter().for_each(|key| state.remove(key));
        Ok(old.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::conformance;

    #[tokio::test]
    async fn keeps_the_promises_of_a_media_store() {
        conformance::media_store(async || InMemoryMediaStore::new()).await;
    }

    #[tokio::test]
    async fn media_beyond_the_limit_are_evicted_the_least_recently_used_first() {
        let store = InMemoryMediaStore::new().with_max_bytes(8);
        let me = Principal::default();
        let mut stored = Vec::new();
        for bytes in ["aaa", "bbb"] {
            stored.push(store.put(&me, bytes.into()).await.unwrap());
        }
        store.get(&me, &stored[0].digest).await.unwrap();
        store.put(&me, "ccc".into()).await.unwrap();
        assert_eq!(
            store.get(&me, &stored[0].digest).await.unwrap().as_deref(),
            Some(&b"aaa"[..])
        );
        assert_eq!(store.get(&me, &stored[1].digest).await.unwrap(), None);
    }
}
