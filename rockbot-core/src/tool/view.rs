//! The tools as one model sees them: ready-made JSON that only ever grows during a turn.

use std::sync::Arc;

use bytes::Bytes;

use super::{ToolEntry, ToolSnapshot};
use crate::ToolName;

/// The tools that are shown to a model: names, and their definitions as JSON text that is made once.
///
/// Cheap to clone. Within a turn a view only appends ([`ToolView::extended`]), so that the provider's prompt
/// cache stays valid.
#[derive(Debug, Clone, Default)]
pub struct ToolView {
    generation: u64,
    entries: Arc<[Arc<ToolEntry>]>,
    json: Bytes,
}

impl ToolView {
    pub(super) fn new(generation: u64, entries: Arc<[Arc<ToolEntry>]>) -> Self {
        let size = entries.iter().map(|entry| entry.definition().len() + 1).sum::<usize>() + 2;
        let mut json = Vec::with_capacity(size);
        for (index, entry) in entries.iter().enumerate() {
            json.push(if index == 0 { b'[' } else { b',' });
            json.extend_from_slice(entry.definition().as_bytes());
        }
        if !json.is_empty() {
            json.push(b']');
        }
        Self {
            generation,
            entries,
            json: json.into(),
        }
    }

    /// The generation of the registry that this view shows.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether there is no tool at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The names of the tools, in the order in which the model sees them.
    pub fn names(&self) -> impl Iterator<Item = &ToolName> {
        self.entries.iter().map(|entry| &entry.registration().name)
    }

    /// The tools, in the order in which the model sees them.
    pub fn entries(&self) -> &[Arc<ToolEntry>] {
        &self.entries
    }

    /// The definitions as the text of a JSON array; empty when there is no tool.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// This view with the tools appended that `snapshot` has and it has not. A definition that changed stays as
    /// it was: the model learns of it in its next turn.
    #[must_use]
    pub fn extended(&self, snapshot: &ToolSnapshot) -> Self {
        if snapshot.generation() == self.generation {
            return self.clone();
        }
        let known = |entry: &Arc<ToolEntry>| self.names().any(|name| *name == entry.registration().name);
        let added = snapshot.entries().iter().filter(|entry| !known(entry)).cloned();
        let entries: Arc<[_]> = self.entries.iter().cloned().chain(added).collect();
        Self::new(snapshot.generation(), entries)
    }
}
