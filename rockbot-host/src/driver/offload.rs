//! The step that offloads messages: their originals are stored before the turn leaves them out of
//! its conversation.

use rockbot_core::chat::Provenance;
use rockbot_core::store::{Namespace, StorePath, WorkingMemory, WorkingNote};
use rockbot_core::turn::JournalError;
use rockbot_core::{CallContext, CallId, Digest};

use super::Drive;
use crate::turn::{OffloadCandidate, OffloadedMessage, TurnEvent};

/// Category of offloaded originals in working memory.
const CATEGORY: &str = "tool-result-stash";

impl Drive<'_> {
    /// Stores the originals, all or none of them, and has the turn leave out the messages that it
    /// decided to leave out. Originals that could not be stored are left out all the same, without
    /// a key to read them again.
    pub(super) async fn compact(&mut self) -> Result<(), JournalError> {
        self.flush().await?;
        let candidates = self.turn.offload_candidates();
        let kept = match &self.driver.large.memory {
            Some(memory) if !candidates.is_empty() => self.store(&**memory, &candidates).await,
            _ => Vec::new(),
        };
        self.feed(TurnEvent::Compacted { kept });
        Ok(())
    }

    async fn store(&self, memory: &dyn WorkingMemory, candidates: &[OffloadCandidate]) -> Vec<OffloadedMessage> {
        let keyed = candidates
            .iter()
            .filter_map(|candidate| Some((candidate, key(&self.cx, &candidate.call.id)?)));
        let (offloaded, notes) = keyed
            .map(|(candidate, key)| (offloaded(candidate, &key), self.note_of(candidate, key)))
            .unzip();
        match memory.put(self.cx.principal(), notes).await {
            Ok(()) => offloaded,
            Err(error) => {
                tracing::warn!(turn = %self.turn.id(), %error, "working memory unavailable; messages leave the conversation without a stored original");
                Vec::new()
            }
        }
    }

    fn note_of(&self, candidate: &OffloadCandidate, key: StorePath) -> WorkingNote {
        let provenance = Provenance::labelled("tool", &candidate.message.label());
        WorkingNote::new(key, candidate.message.text(), provenance)
            .with_ttl(self.turn.policy().economy.ttl)
            .with_category(StorePath::new(CATEGORY).ok())
            .with_tags(vec!["stash".to_owned(), candidate.call.name.to_string()])
    }
}

fn offloaded(candidate: &OffloadCandidate, key: &StorePath) -> OffloadedMessage {
    OffloadedMessage {
        call: candidate.call.id.clone(),
        key: key.clone(),
    }
}

/// Returns the key `stash/{session}/{call}`. A call id that is no valid path segment is replaced
/// by its digest.
fn key(cx: &CallContext, call: &CallId) -> Option<StorePath> {
    let namespace = Namespace::of(cx);
    let path = namespace.path().as_str();
    let owner = path.strip_prefix("session/").unwrap_or(path);
    let named = |call: &str| StorePath::new(&format!("stash/{owner}/{call}")).ok();
    let is_segment = !call.as_str().contains('/') && call.as_str().len() <= 64;
    let plain = is_segment.then(|| named(call.as_str())).flatten();
    plain.or_else(|| named(&Digest::of([call.as_str()]).short()))
}
