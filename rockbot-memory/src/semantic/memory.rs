//! The semantic store around another store.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future;
use rockbot_core::embedding::{Embedding, EmbeddingClient};
use rockbot_core::search::Ranked;
use rockbot_core::store::{LongTermMemory, MemoryEntry, MemoryQuery, Remembered, StoreError, VectorCache};
use rockbot_core::{MemoryId, Principal, Timestamp};
use rockbot_store::file::FileVectorCache;
use rockbot_store::kit::{PrincipalCache, blocking};
use tokio::time::{Instant, timeout};

use super::fuse::fuse;
use super::health::Health;
use super::index::Index;
use super::pending::PendingPrincipals;
use super::queries::Queries;
use super::shared::SemanticState;
use super::{Embedder, SemanticMemoryOptions};

/// Minimum number of hits that each search contributes before fusion.
const POOL: usize = 50;

/// A [`LongTermMemory`] that wraps another long-term memory and also finds its entries by
/// meaning.
///
/// See [the module](super) for the files that it keeps and the texts that it sends to the model.
///
/// # Examples
///
/// ```
/// # use std::sync::Arc;
/// # use std::time::Duration;
/// # use rockbot_core::chat::Provenance;
/// # use rockbot_core::store::{InMemoryLongTermMemory, LongTermMemory, MemoryEntry, MemoryQuery};
/// # use rockbot_core::testing::HashedEmbeddings;
/// # use rockbot_core::{Principal, Timestamp};
/// # use tokio_util::sync::CancellationToken;
/// use rockbot_memory::{SemanticMemory, SemanticMemoryOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::BoxError> {
/// # let me = Principal::default();
/// # let client = HashedEmbeddings::new().same("cat", "pet").same("called", "name");
/// let (store, options) = (Arc::new(InMemoryLongTermMemory::new()), SemanticMemoryOptions::default());
/// let (memory, embedder) = SemanticMemory::open(store, client, options)?;
/// tokio::spawn(embedder.run(CancellationToken::new()));
/// memory.save(&me, MemoryEntry::new("m1", "The cat is called Miso.", Timestamp::default(), Provenance::USER)).await?;
/// while memory.pending(&me).await? > 0 {
///     tokio::time::sleep(Duration::from_millis(1)).await;
/// }
/// let found = memory.search(&me, &MemoryQuery::new("What name has your pet?")).await?;
/// assert_eq!(found[0].item.id, "m1");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SemanticMemory {
    shared: Arc<SemanticState>,
    queries: Queries,
    options: SemanticMemoryOptions,
}

impl SemanticMemory {
    /// Opens a semantic memory around `store`, with the vectors of `client`.
    ///
    /// The returned [`Embedder`] computes the vectors: run it, and stop it before the program ends.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder of vectors is already open, in this or another process, or
    /// cannot be created.
    pub fn open(
        store: Arc<dyn LongTermMemory>,
        client: impl EmbeddingClient,
        options: SemanticMemoryOptions,
    ) -> Result<(Self, Embedder), StoreError> {
        let cache = match (&options.cache, &options.folder) {
            (Some(cache), _) => Some(cache.clone()),
            (None, Some(folder)) => Some(Arc::new(FileVectorCache::open(folder)?) as Arc<dyn VectorCache>),
            (None, None) => None,
        };
        let shared = Arc::new(SemanticState {
            store,
            client: Arc::new(client),
            indexes: PrincipalCache::default(),
            cache,
            pending: PendingPrincipals::default(),
            health: Health::default(),
            max_text: options.max_text,
        });
        let memory = Self {
            shared: shared.clone(),
            queries: Queries::default(),
            options,
        };
        Ok((memory, Embedder(shared)))
    }

    /// Returns the number of entries of `principal` that still need a vector. Entries that the model
    /// rejected do not count.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be read.
    pub async fn pending(&self, principal: &Principal) -> Result<usize, StoreError> {
        Ok(self.shared.index(principal).await?.count_pending())
    }

    /// Returns the index and the vector of `text`, if there is anything to compare with and both are
    /// ready in time.
    async fn place(&self, principal: &Principal, text: &str) -> Result<Option<(Arc<Index>, Embedding)>, StoreError> {
        if self.shared.indexes.get_or_default(principal).is_stale() {
            // The index needs a full load: leave it to the embedder, which has no time limit.
            self.shared.pending.add(principal);
        }
        let began = Instant::now();
        let limit = self.options.query_time_limit;
        let Ok(index) = timeout(limit, self.shared.index(principal)).await else {
            return Ok(None);
        };
        let index = index?;
        if index.is_empty() {
            return Ok(None);
        }
        // A text that an entry has is embedded already.
        if let Some(vector) = self.shared.text_key(text).and_then(|key| index.vector(key)) {
            return Ok(Some((index, vector)));
        }
        let limit = limit.saturating_sub(began.elapsed());
        let vector = self.queries.vector(&self.shared, principal, text, limit).await;
        Ok(vector.map(|vector| (index, vector)))
    }

    /// Returns the nearest entries that `query` admits, in their current version. Entries in `known`
    /// are not read again.
    async fn near(
        &self,
        principal: &Principal,
        query: &MemoryQuery,
        (index, vector): (Arc<Index>, Embedding),
        known: &[Ranked<Arc<MemoryEntry>>],
    ) -> Result<Vec<Ranked<Arc<MemoryEntry>>>, StoreError> {
        let searched = index.clone();
        let least = self.options.min_similarity;
        let hits = blocking(move || Ok(searched.search(&vector, least))).await?;
        let known: BTreeMap<_, _> = known.iter().map(|hit| (&hit.item.id, &hit.item)).collect();
        let mut near = Vec::new();
        for Ranked { item: id, score, .. } in hits {
            if near.len() == query.limit {
                break;
            }
            let entry = match known.get(&id) {
                Some(&entry) => Some(entry.clone()),
                None => self.shared.store.get(principal, &id).await?,
            };
            let key = entry.as_ref().and_then(|entry| self.shared.key(entry));
            if !key.is_some_and(|key| index.says(&id, key)) {
                // The entry was changed outside of this store.
                self.shared.note(principal, &id, key);
                continue;
            }
            let admitted = entry.filter(|entry| query.admits(entry));
            near.extend(admitted.map(|item| Ranked::new(item, score)));
        }
        Ok(near)
    }
}

#[async_trait]
impl LongTermMemory for SemanticMemory {
    async fn get(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        self.shared.store.get(principal, id).await
    }

    async fn save(&self, principal: &Principal, entry: MemoryEntry) -> Result<(), StoreError> {
        let id = entry.id.clone();
        let key = self.shared.key(&entry);
        self.shared.store.save(principal, entry).await?;
        self.shared.note(principal, &id, key);
        Ok(())
    }

    async fn remember(&self, principal: &Principal, entry: MemoryEntry) -> Result<Remembered, StoreError> {
        let remembered = self.shared.store.remember(principal, entry).await?;
        let entry = remembered.entry();
        self.shared.note(principal, &entry.id, self.shared.key(entry));
        Ok(remembered)
    }

    async fn replace(
        &self,
        principal: &Principal,
        before: &MemoryEntry,
        after: MemoryEntry,
    ) -> Result<bool, StoreError> {
        let id = after.id.clone();
        let key = self.shared.key(&after);
        let is_replaced = self.shared.store.replace(principal, before, after).await?;
        if is_replaced {
            self.shared.note(principal, &id, key);
        }
        Ok(is_replaced)
    }

    async fn delete(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        let deleted = self.shared.store.delete(principal, id).await?;
        self.shared.note(principal, id, None);
        Ok(deleted)
    }

    /// Archived entries have no vectors, so the index needs no change.
    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.shared.store.purge(before).await
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<MemoryEntry>>, StoreError> {
        self.shared.store.list(principal).await
    }

    async fn search(
        &self,
        principal: &Principal,
        query: &MemoryQuery,
    ) -> Result<Vec<Ranked<Arc<MemoryEntry>>>, StoreError> {
        if query.text.trim().is_empty() || query.limit == 0 {
            return self.shared.store.search(principal, query).await;
        }
        let wider = query.clone().with_limit(query.limit.max(POOL));
        let words = self.shared.store.search(principal, &wider);
        let (words, place) = future::try_join(words, self.place(principal, &query.text)).await?;
        let mut found = match place {
            None => words,
            Some(place) => {
                let near = self.near(principal, &wider, place, &words).await?;
                let least = f64::from(self.options.min_similarity.max(0.0));
                fuse(words, near, least, |entry| entry.id.clone())
            }
        };
        found.truncate(query.limit);
        Ok(found)
    }

    /// Compares with the vectors that are there: entries saved a moment ago may have none yet.
    async fn similar(
        &self,
        principal: &Principal,
        text: &str,
        limit: usize,
    ) -> Result<Vec<Arc<MemoryEntry>>, StoreError> {
        if text.trim().is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let Some(place) = self.place(principal, text).await? else {
            return Ok(Vec::new());
        };
        let query = MemoryQuery::new(text).with_limit(limit);
        let near = self.near(principal, &query, place, &[]).await?;
        let least = f64::from(self.options.duplicate_similarity);
        let alike = near.into_iter().take_while(|hit| hit.score >= least);
        Ok(alike.map(|hit| hit.item).collect())
    }
}
