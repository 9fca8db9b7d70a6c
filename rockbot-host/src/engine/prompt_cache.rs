//! Watching the beginning of requests: providers keep it cached, and charge less for it, only while it stays the same.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// What the last turn's requests began with.
#[derive(Debug, Default)]
pub(super) struct PrefixWatch(Mutex<Option<Prefix>>);

#[derive(Debug, Clone)]
struct Prefix {
    instructions: Arc<str>,
    tools: Bytes,
}

impl PrefixWatch {
    /// Takes in what a turn's requests begin with; counts and tells what has changed since the last turn.
    pub(super) fn look(&self, instructions: &Arc<str>, tools: &Bytes) {
        let next = Prefix {
            instructions: instructions.clone(),
            tools: tools.clone(),
        };
        // No code that can panic runs under the lock.
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(next);
        let Some(last) = last else { return };
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
        "the beginning of prompts has changed: the provider's cache of it is lost"
    );
}
