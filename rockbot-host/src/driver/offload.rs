//! Keeping the originals of what a turn leaves out of its conversation.

use rockbot_core::chat::Provenance;
use rockbot_core::store::{Namespace, StorePath, WorkingMemory, WorkingNote};
use rockbot_core::turn::JournalError;
use rockbot_core::{CallContext, CallId, Digest};

use super::Drive;
use crate::turn::{OffloadCandidate, OffloadedMessage, TurnEvent};

/// What originals are kept as.
const CATEGORY: &str = "tool-result-stash";

impl Drive<'_> {
    /// Keeps the originals, all or none of them, and has the turn leave out what it decided to leave out.
    pub(super) async fn compact(&mut self) -> Result<(), JournalError> {
        self.flush().await?;
        let losing = self.turn.offload_candidates();
        let kept = match &self.driver.large.memory {
            Some(memory) if !losing.is_empty() => self.keep(&**memory, &losing).await,
            _ => Vec::new(),
        };
        self.feed(&TurnEvent::Compacted { kept })
    }

    async fn keep(&self, memory: &dyn WorkingMemory, losing: &[OffloadCandidate]) -> Vec<OffloadedMessage> {
        let keyed = losing
            .iter()
            .filter_map(|losing| Some((losing, key(&self.cx, &losing.call.id)?)));
        let (kept, notes) = keyed
            .map(|(losing, key)| (original(losing, &key), self.note_of(losing, key)))
            .unzip();
        match memory.put(self.cx.principal(), notes).await {
            Ok(()) => kept,
            Err(error) => {
                tracing::warn!(turn = %self.turn.id(), %error, "what is left out of a conversation could not be kept");
                Vec::new()
            }
        }
    }

    fn note_of(&self, losing: &OffloadCandidate, key: StorePath) -> WorkingNote {
        let provenance = Provenance {
            source: format!("tool:{}", losing.call.name).into(),
            ..Provenance::TOOL
        };
        WorkingNote {
            category: StorePath::new(CATEGORY).ok(),
            tags: vec!["stash".to_owned(), losing.call.name.to_string()],
            ..WorkingNote::new(key, losing.message.text(), provenance).with_ttl(self.turn.policy().economy.ttl)
        }
    }
}

fn original(losing: &OffloadCandidate, key: &StorePath) -> OffloadedMessage {
    OffloadedMessage {
        call: losing.call.id.clone(),
        key: key.clone(),
    }
}

/// `stash/{session}/{call}`; a call whose id is no segment of a path is named by its digest.
fn key(cx: &CallContext, call: &CallId) -> Option<StorePath> {
    let namespace = Namespace::of(cx);
    let path = namespace.path().as_str();
    let owner = path.strip_prefix("session/").unwrap_or(path);
    let named = |call: &str| StorePath::new(&format!("stash/{owner}/{call}")).ok();
    let is_segment = !call.as_str().contains('/') && call.as_str().len() <= 64;
    let as_it_is = is_segment.then(|| named(call.as_str())).flatten();
    as_it_is.or_else(|| named(&Digest::of([call.as_str()]).short()))
}
