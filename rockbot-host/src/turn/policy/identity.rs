//! Call ids are unique within a turn, whatever the model server hands out.
//!
//! Some servers count from zero in each answer. The id names the call in the journal and in its idempotency
//! key, so a repeated one gets a suffix.

use std::collections::HashSet;

use rockbot_core::CallId;
use rockbot_core::chat::ToolCall;
use rockbot_core::turn::FinishedCall;

/// `calls` with ids that differ from each other and from those of `finished`.
pub(in crate::turn) fn unique(calls: &[ToolCall], finished: &[FinishedCall]) -> impl Iterator<Item = ToolCall> {
    let mut taken: HashSet<CallId> = HashSet::new();
    if !calls.is_empty() {
        taken.extend(finished.iter().map(|call| call.call.clone()));
    }
    calls.iter().map(move |call| {
        let id = free_id(&call.id, &taken);
        taken.insert(id.clone());
        ToolCall { id, ..call.clone() }
    })
}

fn free_id(id: &CallId, taken: &HashSet<CallId>) -> CallId {
    if !taken.contains(id) {
        return id.clone();
    }
    let suffixed = (2..).map(|count: u32| CallId::from(format!("{id}-{count}")));
    suffixed
        .into_iter()
        .find(|id| !taken.contains(id))
        .unwrap_or_else(|| id.clone())
}
