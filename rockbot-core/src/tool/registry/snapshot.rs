//! The tools of a registry at one moment, and how the view of a running turn grows by them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::{ToolEntry, ToolView};
use crate::ToolName;

/// All tools of a registry at one moment, ordered by name.
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

    /// Counts the changes of the registry.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The tools, ordered by name.
    pub fn entries(&self) -> &[Arc<ToolEntry>] {
        &self.entries
    }

    /// The tool named `name`.
    pub fn find(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.by_name.get(name)
    }

    /// All tools as a model sees them; made once per snapshot.
    pub fn view(&self) -> &ToolView {
        self.view
            .get_or_init(|| ToolView::new(self.generation, self.entries.clone()))
    }
}

impl ToolView {
    /// This view with the tools appended that `snapshot` has and it has not. A definition that changed stays as
    /// it was: the model learns of it in its next turn.
    #[must_use]
    pub fn extended(&self, snapshot: &ToolSnapshot) -> Self {
        match snapshot.generation() == self.generation() {
            true => self.clone(),
            false => self.followed_by(snapshot),
        }
    }

    /// This view with the tools appended that `snapshot`, perhaps of another registry, has and it has not. It then
    /// shows the generation of `snapshot`.
    #[must_use]
    pub fn followed_by(&self, snapshot: &ToolSnapshot) -> Self {
        let known = |entry: &Arc<ToolEntry>| self.names().any(|name| *name == entry.registration().name);
        let added = snapshot.entries().iter().filter(|entry| !known(entry)).cloned();
        let entries: Arc<[_]> = self.entries().iter().cloned().chain(added).collect();
        Self::new(snapshot.generation(), entries)
    }
}
