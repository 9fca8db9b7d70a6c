//! A snapshot of a registry, and how the view of a running turn grows by it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::{RegistryError, ToolEntry, ToolView};
use crate::ToolName;

/// All tools of a registry at one moment, in the order of their registration. It never changes.
#[derive(Debug, Default)]
pub struct ToolSnapshot {
    generation: u64,
    entries: Arc<[Arc<ToolEntry>]>,
    by_name: HashMap<ToolName, Arc<ToolEntry>>,
    view: OnceLock<ToolView>,
}

impl ToolSnapshot {
    /// Creates the snapshot of `entries`, or returns an error if two have the same name.
    pub(super) fn new(generation: u64, entries: Vec<Arc<ToolEntry>>) -> Result<Self, RegistryError> {
        let mut by_name = HashMap::with_capacity(entries.len());
        for entry in &entries {
            let name = &entry.registration().name;
            if by_name.insert(name.clone(), entry.clone()).is_some() {
                return Err(RegistryError::Duplicate(name.clone()));
            }
        }
        Ok(Self {
            generation,
            entries: entries.into(),
            by_name,
            view: OnceLock::new(),
        })
    }

    /// Returns the generation: the number of changes of the registry before this snapshot.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the tools, in the order of their registration.
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
        if snapshot.generation() == self.generation() {
            return self.clone();
        }
        let known = |entry: &Arc<ToolEntry>| self.names().any(|name| *name == entry.registration().name);
        let added = snapshot.entries().iter().filter(|entry| !known(entry)).cloned();
        let entries: Arc<[_]> = self.entries().iter().cloned().chain(added).collect();
        Self::new(snapshot.generation(), entries)
    }

    /// Returns this view followed by the tools of `snapshot`, which is of another registry. They replace namesakes. The
    /// generation stays that of this view.
    #[must_use]
    pub fn followed_by(&self, snapshot: &ToolSnapshot) -> Self {
        let is_replaced = |entry: &&Arc<ToolEntry>| snapshot.find(entry.registration().name.as_str()).is_some();
        let kept = self.entries().iter().filter(|entry| !is_replaced(entry));
        let entries: Arc<[_]> = kept.chain(snapshot.entries()).cloned().collect();
        Self::new(self.generation(), entries)
    }
}
