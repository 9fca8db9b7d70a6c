//! State shared by search and embedder.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rockbot_core::chat::{ChatError, ChatErrorKind};
use rockbot_core::embedding::{Embedding, EmbeddingCall, EmbeddingClient, EmbeddingError};
use rockbot_core::store::{LongTermMemory, MemoryEntry, StoreError, VectorCache};
use rockbot_core::support::deadline_after;
use rockbot_core::{CallContext, Digest, MemoryId, Principal};
use rockbot_store::kit::{PrincipalCache, blocking};
use tokio::time::timeout;

use super::health::Health;
use super::index::Index;
use super::pending::PendingPrincipals;

/// Session id of embedding calls, which belong to no conversation.
const SESSION: &str = "embeddings";

#[derive(Debug)]
pub(super) struct SemanticState {
    pub(super) store: Arc<dyn LongTermMemory>,
    pub(super) client: Arc<dyn EmbeddingClient>,
    pub(super) indexes: PrincipalCache<Index>,
    pub(super) cache: Option<Arc<dyn VectorCache>>,
    pub(super) pending: PendingPrincipals,
    pub(super) health: Health,
    pub(super) max_text: usize,
}

impl SemanticState {
    /// Truncates a text to the length that is embedded.
    pub(super) fn cut<'t>(&self, text: &'t str) -> &'t str {
        &text[..text.floor_char_boundary(self.max_text)]
    }

    /// Returns the cache key of an entry's vector; `None` for an entry that is archived or empty.
    pub(super) fn key(&self, entry: &MemoryEntry) -> Option<Digest> {
        self.text_key(&entry.content).filter(|_| entry.is_live())
    }

    /// Returns the cache key of a text's vector; `None` for an empty text.
    pub(super) fn text_key(&self, text: &str) -> Option<Digest> {
        let text = self.cut(text.trim());
        (!text.is_empty()).then(|| Digest::of([self.client.model(), text]))
    }

    /// Records the current text of an entry.
    pub(super) fn note(&self, principal: &Principal, id: &MemoryId, key: Option<Digest>) {
        if self.indexes.get_or_default(principal).note(id, key) {
            self.pending.add(principal);
        }
    }

    /// Returns the index of `principal`, after a scan for unknown entries if a scan is due.
    pub(super) async fn index(self: &Arc<Self>, principal: &Principal) -> Result<Arc<Index>, StoreError> {
        let index = self.indexes.get_or_default(principal);
        if index.is_stale() {
            let _looking = index.scan_lock.lock().await;
            // Checked again under the lock: another task may just have scanned.
            if index.is_stale() {
                self.rescan(principal, &index).await?;
            }
        }
        Ok(index)
    }

    async fn rescan(self: &Arc<Self>, principal: &Principal, index: &Arc<Index>) -> Result<(), StoreError> {
        let then = index.now();
        let entries = self.store.list(principal).await?;
        let (shared, scanned) = (self.clone(), index.clone());
        let (keys, missing) = blocking(move || {
            let key = |entry: &Arc<MemoryEntry>| Some((entry.id.clone(), shared.key(entry)?));
            let keys: BTreeMap<_, _> = entries.iter().filter_map(key).collect();
            let missing = scanned.missing(&keys);
            Ok((keys, missing))
        })
        .await?;
        let cached = self.cached(principal, &missing).await;
        let scanned = index.clone();
        blocking(move || {
            scanned.rescan(then, &keys, &cached);
            Ok(())
        })
        .await?;
        if index.count_pending() > 0 {
            self.pending.add(principal);
        }
        Ok(())
    }

    /// Returns the vectors of `texts` that the cache has.
    pub(super) async fn cached(&self, principal: &Principal, texts: &[Digest]) -> HashMap<Digest, Embedding> {
        let Some(cache) = self.cache.as_ref().filter(|_| !texts.is_empty()) else {
            return HashMap::new();
        };
        let loaded = cache.load(principal, texts).await.unwrap_or_else(|error| {
            tracing::warn!(%principal, %error, "vectors of memories are asked for again");
            Vec::new()
        });
        loaded.into_iter().collect()
    }

    /// Embeds `texts`, which must not contain an empty text.
    pub(super) async fn embed(
        &self,
        principal: &Principal,
        texts: Vec<String>,
        time_limit: Duration,
    ) -> Result<Vec<Embedding>, EmbeddingError> {
        let began = Instant::now();
        let cx = CallContext::new(SESSION).with_principal(principal.clone());
        let cx = cx.with_deadline(deadline_after(tokio::time::Instant::now(), time_limit));
        let asked = texts.len();
        // The time limit is enforced here as well: not every client honours its deadline.
        let answer = timeout(time_limit, self.client.embed(EmbeddingCall::new(texts, cx))).await;
        let answer = answer.unwrap_or_else(|_| Err(self.timed_out(time_limit).into()));
        let answer = answer.and_then(|vectors| self.counted(vectors, asked));
        metrics::counter!("rockbot.embedding.calls").increment(1);
        metrics::histogram!("rockbot.embedding.duration").record(began.elapsed().as_secs_f64() * 1e3);
        match &answer {
            Ok(_) => self.health.answered(),
            Err(error) => {
                metrics::counter!("rockbot.embedding.failures").increment(1);
                if !error.is_about_a_text() {
                    self.health.failed(error);
                }
            }
        }
        answer
    }

    fn timed_out(&self, time_limit: Duration) -> ChatError {
        let message = format!("`{}` made no vectors within {time_limit:?}", self.client.model());
        ChatError::new(ChatErrorKind::TimedOut, message)
    }

    /// Checks the number of vectors, because a wrong one would assign vectors to the wrong texts.
    fn counted(&self, vectors: Vec<Embedding>, asked: usize) -> Result<Vec<Embedding>, EmbeddingError> {
        if vectors.len() == asked {
            Ok(vectors)
        } else {
            Err(EmbeddingError::Count {
                model: self.client.model().to_owned(),
                asked,
                answered: vectors.len(),
            })
        }
    }
}
