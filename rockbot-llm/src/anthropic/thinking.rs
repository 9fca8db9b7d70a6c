//! Thinking blocks: kept in the API's own form, with their signatures, so that they can be sent
//! back unchanged.
//!
//! They travel in [`Reasoning::details`] as a JSON list of blocks. A conversation may change its
//! provider between two calls, so each dialect sends only details of its own form.

use std::sync::Arc;

use rockbot_core::chat::Reasoning;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The types of blocks that hold thoughts.
const KINDS: [&str; 2] = ["thinking", "redacted_thinking"];

/// The thoughts of one answer while it arrives.
#[derive(Default)]
pub(super) struct ThoughtAssembler {
    text: String,
    blocks: Vec<Thought>,
}

enum Thought {
    /// A block that arrived in one piece, or whose end is not known to be missing.
    Whole(Box<RawValue>),
    /// A block that arrives in pieces.
    Partial(Map<String, Value>),
}

impl ThoughtAssembler {
    /// Returns `true` if a block of type `kind` holds thoughts.
    pub(super) fn takes(kind: &str) -> bool {
        KINDS.contains(&kind)
    }

    /// Adds a block of a whole answer, whose text is `text`.
    pub(super) fn push_whole(&mut self, block: &RawValue, text: &str) {
        self.text.push_str(text);
        self.blocks.push(Thought::Whole(block.to_owned()));
    }

    /// Begins a block of a stream, and returns its number.
    pub(super) fn begin(&mut self, block: &RawValue, text: &str) -> usize {
        self.text.push_str(text);
        self.blocks.push(match serde_json::from_str(block.get()) {
            Ok(members) => Thought::Partial(members),
            Err(_) => Thought::Whole(block.to_owned()),
        });
        self.blocks.len() - 1
    }

    /// Appends `text` to the thoughts of the block with number `at`.
    pub(super) fn append(&mut self, at: usize, text: &str) {
        self.text.push_str(text);
        self.continue_member(at, "thinking", text);
    }

    /// Appends a piece of the signature of the block with number `at`.
    pub(super) fn sign(&mut self, at: usize, signature: &str) {
        self.continue_member(at, "signature", signature);
    }

    /// Returns the reasoning, if there was any.
    pub(super) fn finish(self) -> Option<Reasoning> {
        if self.blocks.is_empty() {
            return None;
        }
        let blocks = self.blocks.into_iter().filter_map(|block| match block {
            Thought::Whole(raw) => Some(raw),
            Thought::Partial(members) => serde_json::value::to_raw_value(&members).ok(),
        });
        let blocks: Vec<_> = blocks.collect();
        Some(Reasoning::new(self.text).with_details(serde_json::value::to_raw_value(&blocks).ok().map(Arc::from)))
    }

    fn continue_member(&mut self, at: usize, name: &str, more: &str) {
        if let Some(Thought::Partial(members)) = self.blocks.get_mut(at) {
            match members.get_mut(name) {
                Some(Value::String(so_far)) => so_far.push_str(more),
                _ => drop(members.insert(name.to_owned(), more.into())),
            }
        }
    }
}

#[derive(Deserialize)]
struct ThoughtHead<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a str>,
    #[serde(default)]
    signature: Option<String>,
    #[serde(default)]
    data: Option<String>,
}

/// Returns the blocks of `reasoning` that the API accepts: blocks in its own form that are signed
/// or encrypted. The API refuses others, such as the thoughts of another provider's model.
pub(super) fn sendable_blocks(reasoning: &Reasoning) -> Vec<&RawValue> {
    let Some(details) = &reasoning.details else {
        return Vec::new();
    };
    let mut blocks: Vec<&RawValue> = serde_json::from_str(details.get()).unwrap_or_default();
    blocks.retain(|block| {
        let Ok(head) = serde_json::from_str::<ThoughtHead<'_>>(block.get()) else {
            return false;
        };
        let proof = match head.kind {
            Some("thinking") => head.signature,
            Some("redacted_thinking") => head.data,
            _ => None,
        };
        proof.is_some_and(|proof| !proof.is_empty())
    });
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasoning(details: &str) -> Reasoning {
        Reasoning::new("hm").with_details(Arc::from(RawValue::from_string(details.into()).unwrap()))
    }

    #[test]
    fn only_signed_blocks_of_this_dialect_are_sent_back() {
        let signed = r#"{"type":"thinking",  "thinking":"a","signature":"s"}"#;
        let redacted = r#"{"type":"redacted_thinking","data":"x"}"#;
        let others = r#"{"type":"thinking","thinking":"b"},{"type":"reasoning.text","text":"c","signature":"s"},{}"#;
        let all = reasoning(&format!("[{signed},{others},{redacted}]"));
        let sent: Vec<_> = sendable_blocks(&all).into_iter().map(RawValue::get).collect();
        assert_eq!(sent, [signed, redacted]);
        for malformed in ["{}", "[1]", r#"["x"]"#, "null"] {
            assert!(sendable_blocks(&reasoning(malformed)).is_empty(), "{malformed}");
        }
    }
}
