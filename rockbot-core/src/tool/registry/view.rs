//! The tools as a model sees them: JSON that is written once and only grows during a turn.

use std::sync::Arc;

use bytes::Bytes;

use super::ToolEntry;
use crate::ToolName;

/// The tools that a model sees: their names, and their definitions as JSON text that is written
/// once.
///
/// Cheap to clone. Within a turn a view only grows at its end ([`ToolView::extended`]), so that
/// the provider's prompt caching keeps working: a cached prefix stays byte for byte the same.
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

    pub(super) fn of_generation(mut self, generation: u64) -> Self {
        self.generation = generation;
        self
    }

    /// Returns a copy that shows the tools and cannot run them, so that it keeps nothing of their
    /// host.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn detached(&self) -> Self {
        let entries = self.entries.iter().map(|entry| Arc::new(entry.detached()));
        Self {
            entries: entries.collect(),
            ..self.clone()
        }
    }

    /// Returns the generation of the registry that this view shows.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns `true` if there is no tool.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the names of the tools, in the order that the model sees.
    pub fn names(&self) -> impl Iterator<Item = &ToolName> {
        self.entries.iter().map(|entry| &entry.registration().name)
    }

    /// Returns the tools, in the order that the model sees.
    pub fn entries(&self) -> &[Arc<ToolEntry>] {
        &self.entries
    }

    /// Iterates over the tools, in the order that the model sees.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<ToolEntry>> {
        self.entries.iter()
    }

    /// Returns the definitions as the text of a JSON array, or an empty text if there is no tool.
    pub fn json(&self) -> &Bytes {
        &self.json
    }
}

impl<'a> IntoIterator for &'a ToolView {
    type Item = &'a Arc<ToolEntry>;
    type IntoIter = std::slice::Iter<'a, Arc<ToolEntry>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::testing::mock_tool;
    use crate::tool::{InMemoryToolRegistry, Owner, ToolRegistry};

    fn add(registry: &InMemoryToolRegistry, owner: &Owner, name: &str, description: &str) {
        let tool = mock_tool(name).0.description(description);
        registry.register(owner, tool).unwrap();
    }

    /// Reads the names and descriptions from the JSON that a model gets.
    fn shown(view: &ToolView) -> Vec<(String, String)> {
        let definitions: Vec<Value> = serde_json::from_slice(view.json()).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let shown: Vec<_> = definitions.iter().map(|tool| &tool["function"]).collect();
        assert!(view.into_iter().map(|tool| &tool.registration().name).eq(view.names()));
        assert!(
            view.names()
                .eq(shown.iter().map(|function| function["name"].as_str().unwrap()))
        );
        shown
            .iter()
            .map(|function| (text(&function["name"]), text(&function["description"])))
            .collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected
            .iter()
            .map(|(name, description)| ((*name).to_owned(), (*description).to_owned()))
            .collect()
    }

    #[test]
    fn a_view_only_grows_and_changed_definitions_wait() {
        let registry = InMemoryToolRegistry::new();
        let owner = Owner::new("owner");
        for name in ["m", "n", "o"] {
            add(&registry, &owner, name, "old");
        }
        let view = registry.snapshot().view().clone();
        assert_eq!(shown(&view), pairs(&[("m", "old"), ("n", "old"), ("o", "old")]));

        for name in ["m", "n"] {
            registry.unregister(&owner, &name.into()).unwrap();
        }
        add(&registry, &owner, "n", "new");
        add(&registry, &owner, "z", "new");
        add(&registry, &owner, "a", "new");
        let snapshot = registry.snapshot();
        let grown = view.extended(&snapshot);
        let expected = [("m", "old"), ("n", "old"), ("o", "old"), ("z", "new"), ("a", "new")];
        assert_eq!(
            shown(&grown),
            pairs(&expected),
            "what is gone or changed stays, what is new comes last"
        );
        let unclosed = view.json().len() - 1;
        assert_eq!(
            view.json()[..unclosed],
            grown.json()[..unclosed],
            "the cached beginning stays valid"
        );
        assert_eq!(grown.generation(), snapshot.generation());

        let next_turn = [("o", "old"), ("n", "new"), ("z", "new"), ("a", "new")];
        assert_eq!(shown(snapshot.view()), pairs(&next_turn));
    }

    #[test]
    fn nothing_changes_while_the_registry_does_not() {
        let registry = InMemoryToolRegistry::new();
        let owner = Owner::new("owner");
        add(&registry, &owner, "a", "old");
        let snapshot = registry.snapshot();
        let extended = snapshot.view().extended(&snapshot);
        assert_eq!(
            extended.json().as_ptr(),
            snapshot.view().json().as_ptr(),
            "the text is shared, not made again"
        );
        assert_eq!(snapshot.view().json().as_ptr(), snapshot.view().json().as_ptr());
    }

    #[test]
    fn no_tools_are_no_text() {
        let empty = ToolView::default();
        assert!(empty.is_empty() && empty.json().is_empty());
        assert!(InMemoryToolRegistry::new().snapshot().view().json().is_empty());

        let registry = InMemoryToolRegistry::new();
        let owner = Owner::new("owner");
        add(&registry, &owner, "a", "new");
        assert_eq!(shown(&empty.extended(&registry.snapshot())), pairs(&[("a", "new")]));
    }
}
