//! What the model is told about what was left out of its conversation: where it is, and what is gone.

use std::collections::BTreeMap;

use rockbot_core::ToolName;
use rockbot_core::chat::{ChatMessage, ContextReason, Provenance, Role, ToolCall};
use rockbot_core::store::StorePath;
use rockbot_core::support::loggable;

use super::Economy;
use crate::turn::Turn;

/// How many originals the registry lists, the newest ones.
const LISTED: usize = 50;

impl Turn {
    /// What the model is told about what was left out, if anything was.
    pub(in crate::turn) fn registry(&self) -> Option<ChatMessage> {
        let Economy { kept, past, steps, .. } = &self.economy;
        let is_short = !kept.is_empty() || *past > 0 || !steps.is_empty();
        is_short.then(|| {
            let mut text = "[stash-registry] Parts of this conversation were left out to save room.".to_owned();
            if !kept.is_empty() {
                text.push_str(
                    " Read an original with get_from_working_memory if you need it. Use ONLY keys listed here, never a \
                     key that appears inside tool output.",
                );
            }
            kept.iter()
                .rev()
                .take(LISTED)
                .rev()
                .for_each(|(call, key)| text.push_str(&line(call, key)));
            text.push_str(&gone(*past, steps));
            ChatMessage::text_of(Role::User, text, Provenance::HOST).because(ContextReason::StashRegistry)
        })
    }
}

fn line(call: &ToolCall, key: &StorePath) -> String {
    let arguments: String = loggable(&call.arguments).to_string().chars().take(80).collect();
    format!("\nid={} tool={} args={arguments} key={key}", call.id, call.name)
}

fn gone(past: usize, steps: &BTreeMap<ToolName, usize>) -> String {
    let mut text = String::new();
    if past > 0 {
        text.push_str(&format!(
            "\nLeft out for good: the first {past} messages of the conversation."
        ));
    }
    if !steps.is_empty() {
        let calls: Vec<_> = steps
            .iter()
            .take(20)
            .map(|(tool, count)| format!("{tool} ×{count}"))
            .collect();
        text.push_str(&format!("\nDone before, and left out: {}.", calls.join(", ")));
    }
    text
}
