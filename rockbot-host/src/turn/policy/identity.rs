//! Unique call ids within a turn, whatever ids the model server sends.
//!
//! Some servers count from zero in each answer. The id identifies the call in the journal and in its idempotency
//! key, so a repeated id gets a suffix.

use std::collections::HashSet;

use rockbot_core::CallId;
use rockbot_core::chat::ToolCall;
use rockbot_core::turn::FinishedCall;

/// Returns `calls` with ids that differ from each other and from those of `finished`.
pub(in crate::turn) fn unique(calls: &[ToolCall], finished: &[FinishedCall]) -> impl Iterator<Item = ToolCall> {
    let mut taken: HashSet<CallId> = HashSet::new();
    // Most answers of a turn have no calls, and then need no set.
    if !calls.is_empty() {
        taken.extend(finished.iter().map(|call| call.call.clone()));
    }
    calls.iter().map(move |call| {
        let id = free_id(&call.id, &taken);
        taken.insert(id.clone());
        ToolCall::new(id, call.name.clone(), call.arguments.clone())
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
