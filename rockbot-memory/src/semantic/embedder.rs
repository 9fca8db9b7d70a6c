//! The background task that embeds entries.
//!
//! The content of a memory is embedded, not its category and tags: they are found as words, and
//! filing an entry needs no new vector.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::ChatErrorKind;
use rockbot_core::embedding::{Embedding, EmbeddingError};
use rockbot_core::store::StoreError;
use rockbot_core::support::loggable;
use rockbot_core::{BoxError, Digest, MemoryId, Principal};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::index::Index;
use super::shared::SemanticState;

/// Maximum number of texts in one call.
const BATCH: usize = 32;

/// Time limit of one call.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Pause after a failure: the first pause, and the maximum.
const FIRST_REST: Duration = Duration::from_secs(1);
const MAX_REST: Duration = Duration::from_secs(5 * 60);

/// The background task of a [`SemanticMemory`](super::SemanticMemory).
///
/// It embeds up to 32 texts at a time, and half as many after a call that timed out. When the
/// model fails, it retries with exponential back-off from one second to 5 minutes, and serves
/// other principals first. A text that the model rejects, for example because it is too long, is
/// found by its words only, until it changes or the process restarts.
#[derive(Debug)]
#[must_use = "without it no entry gets a vector"]
pub struct Embedder(pub(super) Arc<SemanticState>);

/// The adaptive batch size: halved after a time-out, reset after a success.
#[derive(Debug)]
struct Pace {
    batch: usize,
    rest: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            batch: BATCH,
            rest: FIRST_REST,
        }
    }
}

/// An entry to embed.
#[derive(Debug)]
struct EmbeddingRequest {
    id: MemoryId,
    key: Digest,
    text: String,
}

impl Embedder {
    /// Runs until `stop` fires.
    pub async fn run(self, stop: CancellationToken) {
        let mut pace = Pace::default();
        while let Some(principal) = stop.run_until_cancelled(self.0.pending.next()).await {
            let Err(error) = self.embed_all(&principal, &mut pace, &stop).await else {
                continue;
            };
            let rest = pace.rest;
            tracing::debug!(error = %loggable(&error.to_string()), ?rest, "vectors of memories are tried again");
            if stop.run_until_cancelled(sleep(rest)).await.is_none() {
                return;
            }
            self.0.pending.add(&principal);
            pace.rest = (rest * 2).min(MAX_REST);
        }
    }

    /// Embeds entries of a principal until none is left, or `stop` fires.
    async fn embed_all(
        &self,
        principal: &Principal,
        pace: &mut Pace,
        stop: &CancellationToken,
    ) -> Result<(), BoxError> {
        let index = self.0.index(principal).await?;
        while !stop.is_cancelled() {
            let wanted = self.wanted(principal, &index, pace.batch).await?;
            if wanted.is_empty() {
                return Ok(());
            }
            let Some(wanted) = self.uncached(principal, &index, wanted).await else {
                continue;
            };
            // Only the call is cancelled: what it cost is kept.
            let asked = stop.run_until_cancelled(self.ask(principal, &index, &wanted)).await;
            let Some(vectors) = asked else {
                return Ok(());
            };
            if vectors.as_ref().is_err_and(is_timeout) {
                pace.batch = (wanted.len() / 2).max(1);
            }
            self.keep(principal, &index, wanted.iter().zip(vectors?)).await;
            *pace = Pace::default();
        }
        Ok(())
    }

    /// Returns up to `limit` entries that need a vector, in their current version.
    async fn wanted(
        &self,
        principal: &Principal,
        index: &Index,
        limit: usize,
    ) -> Result<Vec<EmbeddingRequest>, StoreError> {
        let mut wanted = Vec::new();
        for id in index.pending(limit) {
            let entry = self.0.store.get(principal, &id).await?;
            let key = entry.as_ref().and_then(|entry| self.0.key(entry));
            index.note(&id, key);
            if let (Some(entry), Some(key)) = (entry, key) {
                let text = self.0.cut(entry.content.trim()).to_owned();
                wanted.push(EmbeddingRequest { id, key, text });
            }
        }
        Ok(wanted)
    }

    /// Takes the vectors that another process has computed. Returns the entries that still need one;
    /// `None` if there are none.
    async fn uncached(
        &self,
        principal: &Principal,
        index: &Index,
        wanted: Vec<EmbeddingRequest>,
    ) -> Option<Vec<EmbeddingRequest>> {
        let keys: Vec<_> = wanted.iter().map(|wanted| wanted.key).collect();
        let cached = self.0.cached(principal, &keys).await;
        let is_cached = |wanted: &EmbeddingRequest| {
            let vector = cached.get(&wanted.key);
            vector.is_some_and(|vector| index.keep_cached(&wanted.id, wanted.key, vector))
        };
        let rest: Vec<_> = wanted.into_iter().filter(|wanted| !is_cached(wanted)).collect();
        Some(rest).filter(|rest| !rest.is_empty())
    }

    /// Embeds the texts; returns `None` for each text that the model rejects.
    async fn ask(
        &self,
        principal: &Principal,
        index: &Index,
        wanted: &[EmbeddingRequest],
    ) -> Result<Vec<Option<Embedding>>, EmbeddingError> {
        let texts = wanted.iter().map(|wanted| wanted.text.clone()).collect();
        match self.0.embed(principal, texts, TIME_LIMIT).await {
            Ok(vectors) => Ok(vectors.into_iter().map(Some).collect()),
            Err(error) if error.is_about_a_text() => self.ask_one_by_one(principal, index, wanted, error).await,
            Err(error) => Err(error),
        }
    }

    /// Embeds the texts one by one to find out which of them the model rejected with `error`.
    ///
    /// When it rejects all of them, and no other entry has a vector, the model itself may be
    /// misconfigured: then the batch fails and no text is marked as rejected.
    async fn ask_one_by_one(
        &self,
        principal: &Principal,
        index: &Index,
        wanted: &[EmbeddingRequest],
        error: EmbeddingError,
    ) -> Result<Vec<Option<Embedding>>, EmbeddingError> {
        if let [wanted] = wanted {
            let error = loggable(&error.to_string()).to_string();
            tracing::warn!(id = %wanted.id, error, "a memory is found by its words only");
            return Ok(vec![None]);
        }
        let mut vectors = Vec::with_capacity(wanted.len());
        for wanted in wanted {
            let asked = self.0.embed(principal, vec![wanted.text.clone()], TIME_LIMIT).await;
            match asked {
                Ok(vector) => vectors.extend(vector.into_iter().map(Some)),
                Err(error) if error.is_about_a_text() => vectors.push(None),
                Err(error) => return Err(error),
            }
        }
        if vectors.iter().all(Option::is_none) && index.is_empty() {
            self.0.health.failed(&error);
            return Err(error);
        }
        Ok(vectors)
    }

    async fn keep(
        &self,
        principal: &Principal,
        index: &Arc<Index>,
        vectors: impl Iterator<Item = (&EmbeddingRequest, Option<Embedding>)>,
    ) {
        let mut known = Vec::new();
        for (wanted, vector) in vectors {
            match vector {
                Some(vector) => {
                    index.keep(&wanted.id, wanted.key, &vector);
                    known.push((wanted.key, vector));
                }
                None => index.refuse(&wanted.id, wanted.key),
            }
        }
        if let Err(error) = self.cache(principal, index, &known).await {
            tracing::warn!(%error, "vectors of memories are asked for again after a restart");
        }
    }

    async fn cache(
        &self,
        principal: &Principal,
        index: &Index,
        vectors: &[(Digest, Embedding)],
    ) -> Result<(), StoreError> {
        let Some(cache) = &self.0.cache else { return Ok(()) };
        let count = cache.add(principal, vectors).await?;
        if count > 2 * index.count() + 1000 {
            // The index may lack what another process has saved meanwhile.
            let entries = self.0.store.list(principal).await?;
            let texts: Vec<_> = entries.iter().filter_map(|entry| self.0.key(entry)).collect();
            cache.retain(principal, &texts).await?;
        }
        Ok(())
    }
}

fn is_timeout(error: &EmbeddingError) -> bool {
    matches!(error, EmbeddingError::Call(error) if error.kind() == ChatErrorKind::TimedOut)
}
