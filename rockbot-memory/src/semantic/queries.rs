//! The cache of query vectors.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rockbot_core::embedding::Embedding;
use rockbot_core::{Digest, Principal};

use super::shared::SemanticState;

/// Maximum number of cached vectors: each turn of a conversation searches for its topics again.
const MAX_QUERIES: usize = 128;

/// The most recent queries, the newest last.
#[derive(Debug, Default)]
pub(super) struct Queries(Mutex<VecDeque<(Digest, Embedding)>>);

impl Queries {
    /// Returns the vector of `text`, if it is available within the time limit.
    pub(super) async fn vector(
        &self,
        shared: &SemanticState,
        principal: &Principal,
        text: &str,
        time_limit: Duration,
    ) -> Option<Embedding> {
        let text = shared.cut(text.trim());
        let key = Digest::of([principal.as_str(), text]);
        if let Some(vector) = self.known(key) {
            return Some(vector);
        }
        if shared.health.is_resting() {
            return None;
        }
        // The failure was logged when it began.
        let mut vectors = shared.embed(principal, vec![text.to_owned()], time_limit).await.ok()?;
        let vector = vectors.pop()?;
        self.keep(key, vector.clone());
        Some(vector)
    }

    fn known(&self, key: Digest) -> Option<Embedding> {
        let queries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = queries.iter().find(|(known, _)| *known == key);
        known.map(|(_, vector)| vector.clone())
    }

    fn keep(&self, key: Digest, vector: Embedding) {
        let mut queries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if queries.len() >= MAX_QUERIES {
            queries.pop_front();
        }
        queries.push_back((key, vector));
    }
}
