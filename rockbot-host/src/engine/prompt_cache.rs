//! Detection of changes to the prefix of requests, which invalidate the provider's prompt cache.
//!
//! Providers cache the prefix of a request and charge less for it while it stays the same. A
//! prefix that changes from turn to turn costs money without any other symptom, so each change is
//! counted and logged.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// The prefix of the last turn's requests.
#[derive(Debug, Default)]
pub(super) struct PrefixWatch(Mutex<Option<Prefix>>);

#[derive(Debug, Clone)]
struct Prefix {
    instructions: Arc<str>,
    tools: Bytes,
}

impl PrefixWatch {
    /// Compares the prefix of a turn with the last turn's, and reports the changes.
    pub(super) fn observe(&self, instructions: &Arc<str>, tools: &Bytes) {
        let next = Prefix {
            instructions: instructions.clone(),
            tools: tools.clone(),
        };
        // Held for the exchange alone; the comparison and the report happen outside. No code that can
        // panic runs under the lock.
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(next);
        let Some(last) = last else { return };
        // Equal pointers are the usual case, and save a comparison of kilobytes for each turn.
        let same = |one: &[u8], other: &[u8]| std::ptr::eq(one, other) || one == other;
        if !same(last.instructions.as_bytes(), instructions.as_bytes()) {
            changed("instructions");
        }
        if !same(&last.tools, tools) {
            changed("tools");
        }
    }
}

fn changed(part: &'static str) {
    metrics::counter!("rockbot.prompt.prefix_changes", "part" => part).increment(1);
    tracing::warn!(
        part,
        "prompt prefix changed; the provider's prompt cache is invalidated"
    );
}
