//! Unique call ids within a turn, whatever ids the model server sends.
//!
//! Some servers count from zero in each answer. The id identifies the call in the journal and in
//! its idempotency key, so a repeated id gets a suffix. An id of nine letters and digits keeps
//! its length, because the templates of some models accept no other.

use std::collections::HashSet;

use rockbot_core::CallId;
use rockbot_core::chat::ToolCall;
use rockbot_core::turn::FinishedCall;

/// Length of the ids that keep it, in bytes.
const SHORT: usize = 9;

/// Returns `calls` with ids that differ from each other and from the ids of `finished`.
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
    let is_short = id.as_str().len() == SHORT && id.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric());
    let suffixed = (2..).map(|count: u32| {
        let count = count.to_string();
        CallId::from(if is_short {
            format!("{}{count}", &id.as_str()[..SHORT.saturating_sub(count.len())])
        } else {
            format!("{id}-{count}")
        })
    });
    suffixed
        .into_iter()
        .find(|id| !taken.contains(id))
        .unwrap_or_else(|| id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_id_gets_a_suffix_and_a_short_one_keeps_its_length() {
        let call = |id: &str| ToolCall::new(id, "look", "{}");
        let ids = [
            "call_1",
            "call_1",
            "text00001",
            "text00002",
            "text00001",
            "abcdefghi",
            "abcdefghi",
            "abcdefghi",
        ];
        let unique: Vec<_> = unique(&ids.map(call), &[]).map(|call| call.id.to_string()).collect();
        let expected = [
            "call_1",
            "call_1-2",
            "text00001",
            "text00002",
            "text00003",
            "abcdefghi",
            "abcdefgh2",
            "abcdefgh3",
        ];
        assert_eq!(unique, expected);
    }
}
