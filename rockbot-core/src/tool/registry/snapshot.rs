//! A snapshot of a registry, and how the view of a running turn grows by it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::{ToolEntry, ToolView};
use crate::ToolName;

/// All tools of a registry at one moment, ordered by name. It never changes.
#[derive(Debug, Default)]
pub struct ToolSnapshot {
    generation: u64,
    entries: Arc<[Arc<ToolEntry>]>,
    pub(super) by_name: HashMap<ToolName, Arc<ToolEntry>>,
    view: OnceLock<ToolView>,
}

impl ToolSnapshot {
    pub(super) fn new(generation: u64, by_name: HashMap<ToolName, Arc<ToolEntry>>) -> Self {
        let mut entries: Vec<_> = by_name.values().cloned().collect();
        entries.sort_by(|a, b| a.registration().name.cmp(&b.registration().name));
        Self {
            generation,
            entries: entries.into(),
            by_name,
            view: OnceLock::new(),
        }
    }

    /// Returns the generation: the number of changes of the registry before this snapshot.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the tools, ordered by name.
    pub fn entries(&self) -> &[Arc<ToolEntry>] {
        &self.entries
    }

    /// Returns the tool named `name`.
    pub fn find(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.by_name.get(name)
    }

    /// Returns the view of all tools. It is computed once per snapshot, at the first call.
    pub fn view(&self) -> &ToolView {
        self.view
            .get_or_init(|| ToolView::new(self.generation, self.entries.clone()))
    }
}

impl ToolView {
    /// Returns this view followed by the tools of `snapshot` that it does not have. A definition that changed stays
    /// as it was, so that the prompt cache stays valid: the model learns of it in its next turn. If the generation is
    /// the same, this is a cheap clone.
    #[must_use]
    pub fn extended(&self, snapshot: &ToolSnapshot) -> Self {
        match snapshot.generation() == self.generation() {
            true => self.clone(),
            false => self.followed_by(snapshot),
        }
    }

    /// Returns this view followed by the tools of `snapshot` that it does not have, where `snapshot` may be of
    /// another registry. The view then has the generation of `snapshot`.
    #[must_use]
    pub fn followed_by(&self, snapshot: &ToolSnapshot) -> Self {
        let known = |entry: &Arc<ToolEntry>| self.names().any(|name| *name == entry.registration().name);
        let added = snapshot.entries().iter().filter(|entry| !known(entry)).cloned();
        let entries: Arc<[_]> = self.entries().iter().cloned().chain(added).collect();
        Self::new(snapshot.generation(), entries)
    }
}
