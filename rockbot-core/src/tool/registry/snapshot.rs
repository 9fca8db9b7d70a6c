//! A snapshot of a registry, and how the view of a running turn grows by it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use super::{RegistryError, ToolEntry, ToolView};
use crate::ToolName;
use crate::tool::{ToolExposure, ToolGroup};

/// All tools of a registry at one moment, in the order of their registration. It never changes.
#[derive(Debug, Default)]
pub struct ToolSnapshot {
    generation: u64,
    entries: Arc<[Arc<ToolEntry>]>,
    by_name: HashMap<ToolName, Arc<ToolEntry>>,
    /// The tools of each group. It is computed once, so that the work for a request depends only on
    /// the tools that it shows.
    by_group: HashMap<ToolName, Vec<Arc<ToolEntry>>>,
    /// The tools that are always shown.
    always: Vec<Arc<ToolEntry>>,
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
        let (mut by_group, mut always) = (HashMap::<_, Vec<_>>::new(), Vec::new());
        for entry in &entries {
            if let Some(group) = entry.exposure().group() {
                by_group.entry(group.clone()).or_default().push(entry.clone());
            }
            if entry.exposure().is_always() {
                always.push(entry.clone());
            }
        }
        Ok(Self {
            generation,
            entries: entries.into(),
            by_name,
            by_group,
            always,
            view: OnceLock::new(),
        })
    }

    /// Returns the snapshot of the tools that `allows` returns `true` for, of the same generation.
    #[must_use]
    pub fn filtered(&self, allows: impl Fn(&ToolEntry) -> bool) -> Self {
        let kept = self.entries.iter().filter(|entry| allows(entry)).cloned().collect();
        Self::new(self.generation, kept).expect("the names of a snapshot are distinct")
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

    /// Returns the tools that a model sees while the groups `active` are active: the tools that are
    /// always shown, then the tools of each group in the order of `active`.
    ///
    /// In this order the definitions of a conversation only grow at their end, and providers can
    /// cache them.
    pub fn exposed<'a>(&'a self, active: &'a [ToolName]) -> impl Iterator<Item = &'a Arc<ToolEntry>> {
        self.always.iter().chain(self.of_groups(active))
    }

    /// Returns the tools of these groups, in their order. The name of a tool that is shown on demand
    /// counts as a group of this tool alone.
    pub fn of_groups<'a>(&'a self, groups: &'a [ToolName]) -> impl Iterator<Item = &'a Arc<ToolEntry>> {
        groups.iter().flat_map(|group| {
            let is_in = move |entry: &&Arc<ToolEntry>| entry.exposure().group() == Some(group);
            let is_single = |entry: &&Arc<ToolEntry>| !entry.exposure().is_always() && !is_in(entry);
            let itself = self.find(group.as_str()).filter(is_single);
            itself.into_iter().chain(self.by_group.get(group).into_iter().flatten())
        })
    }

    /// Returns the groups that a model can activate, in the order of their first tools.
    pub fn groups(&self) -> Vec<&ToolGroup> {
        let mut groups: Vec<&ToolGroup> = Vec::new();
        for entry in &*self.entries {
            if let ToolExposure::OnDemand(group) = entry.exposure()
                && !groups.iter().any(|known| known.name == group.name)
            {
                groups.push(group);
            }
        }
        groups
    }

    /// Returns the view of all tools. It is computed once per snapshot, at the first call.
    pub fn view(&self) -> &ToolView {
        self.view
            .get_or_init(|| ToolView::new(self.generation, self.entries.clone()))
    }
}

impl ToolView {
    /// Returns this view followed by the tools of `snapshot` that it does not have. A definition that
    /// changed stays as it was, so that the prompt cache stays valid: the model learns of it in its
    /// next turn. If the generation is the same, this is a cheap clone.
    #[must_use]
    pub fn extended(&self, snapshot: &ToolSnapshot) -> Self {
        if snapshot.generation() == self.generation() {
            self.clone()
        } else {
            self.extended_by(snapshot.generation(), snapshot.entries())
        }
    }

    /// Returns this view followed by the `tools` that it does not have, as
    /// [`extended`](Self::extended) does. It shows the `generation` then. If it has all of them,
    /// its text is shared.
    #[must_use]
    pub fn extended_by<'a>(&self, generation: u64, tools: impl IntoIterator<Item = &'a Arc<ToolEntry>>) -> Self {
        let mut known: HashSet<_> = self.names().collect();
        let added = tools
            .into_iter()
            .filter(|entry| known.insert(&entry.registration().name));
        let added: Vec<_> = added.cloned().collect();
        if added.is_empty() {
            return self.clone().of_generation(generation);
        }
        let entries: Arc<[_]> = self.entries().iter().cloned().chain(added).collect();
        Self::new(generation, entries)
    }

    /// Returns this view followed by the tools of `snapshot`, which is of another registry. They
    /// replace namesakes. The generation stays the generation of this view.
    #[must_use]
    pub fn followed_by(&self, snapshot: &ToolSnapshot) -> Self {
        let is_replaced = |entry: &&Arc<ToolEntry>| snapshot.find(entry.registration().name.as_str()).is_some();
        let kept = self.entries().iter().filter(|entry| !is_replaced(entry));
        let entries: Arc<[_]> = kept.chain(snapshot.entries()).cloned().collect();
        Self::new(self.generation(), entries)
    }
}
