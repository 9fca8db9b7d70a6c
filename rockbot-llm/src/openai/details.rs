//! The provider's own form of the reasoning (`reasoning_details`), kept so that it can be sent
//! back unchanged.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Collects the entries of one answer.
#[derive(Default)]
pub(super) struct DetailAssembler {
    pieces: Vec<Box<RawValue>>,
}

impl DetailAssembler {
    /// Adds a list of entries.
    pub(super) fn push(&mut self, entries: &RawValue) {
        if entries.get().starts_with('[') && entries.get() != "[]" {
            self.pieces.push(entries.to_owned());
        }
    }

    /// Returns all entries as one list: the server's own text if it came in one piece.
    pub(super) fn finish(mut self) -> Option<Arc<RawValue>> {
        if self.pieces.len() <= 1 {
            return self.pieces.pop().map(Arc::from);
        }
        let mut entries = Vec::new();
        for piece in self.pieces {
            let piece: Vec<Map<String, Value>> = serde_json::from_str(piece.get()).ok()?;
            for entry in piece {
                add(&mut entries, entry);
            }
        }
        serde_json::value::to_raw_value(&entries).ok().map(Arc::from)
    }
}

/// Adds an entry, or continues the last entry: a thought is streamed as many entries of one type
/// and index.
fn add(entries: &mut Vec<Map<String, Value>>, entry: Map<String, Value>) {
    let same = |last: &Map<String, Value>, name: &str| last.get(name) == entry.get(name);
    let has_index = entry.contains_key("index");
    match entries.last_mut() {
        Some(last) if has_index && same(last, "index") && same(last, "type") => {
            for (name, value) in entry {
                continue_with(last, name, value);
            }
        }
        _ => entries.push(entry),
    }
}

fn continue_with(last: &mut Map<String, Value>, name: String, value: Value) {
    match (last.get_mut(&name), value) {
        (_, Value::Null) => {}
        (Some(Value::String(so_far)), Value::String(more)) if name == "text" || name == "summary" => {
            so_far.push_str(&more);
        }
        (_, value) => {
            last.insert(name, value);
        }
    }
}
