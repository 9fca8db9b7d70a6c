//! The registry of one process.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::watch;

use super::{Owner, RegistryError, ToolEntry, ToolRegistry, ToolSnapshot};
use crate::ToolName;
use crate::tool::Tool;

/// A [`ToolRegistry`] in the memory of one process.
pub struct InMemoryToolRegistry {
    current: ArcSwap<ToolSnapshot>,
    /// Held by writers from loading a snapshot until swapping in the next snapshot, so that no
    /// change is lost. Readers do not take it.
    writing: Mutex<()>,
    generations: watch::Sender<u64>,
}

impl Default for InMemoryToolRegistry {
    fn default() -> Self {
        Self {
            current: ArcSwap::default(),
            writing: Mutex::new(()),
            generations: watch::Sender::new(0),
        }
    }
}

impl fmt::Debug for InMemoryToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InMemoryToolRegistry")
            .field(&self.current.load())
            .finish()
    }
}

impl InMemoryToolRegistry {
    /// Creates a registry without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets `change` edit a copy of the tools, and swaps the copy in if the change succeeded and
    /// changed something.
    fn change<T>(
        &self,
        change: impl FnOnce(&ToolSnapshot, &mut Vec<Arc<ToolEntry>>) -> Result<(T, bool), RegistryError>,
    ) -> Result<T, RegistryError> {
        // The guarded value is `()`: a writer that panicked cannot have left it in a bad state.
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current.load_full();
        let mut tools = current.entries().to_vec();
        let (result, changed) = change(&current, &mut tools)?;
        if changed {
            let generation = current.generation() + 1;
            self.current.store(Arc::new(ToolSnapshot::new(generation, tools)?));
            self.generations.send_replace(generation);
        }
        Ok(result)
    }
}

/// Replaces the tools of `owner` in `tools` by `entries`.
///
/// A tool keeps the place of its namesake, so that the text for models, and with it the
/// provider's prompt cache, changes as little as possible. The others follow in their order.
fn replace(tools: &mut Vec<Arc<ToolEntry>>, owner: &Owner, entries: Vec<Arc<ToolEntry>>) {
    let names = entries.iter().map(|entry| entry.registration().name.clone());
    let places: HashMap<ToolName, usize> = names.zip(0..).collect();
    let mut entries: Vec<_> = entries.into_iter().map(Some).collect();
    let mut namesake = |entry: &ToolEntry| entries[*places.get(&entry.registration().name)?].take();
    let kept = std::mem::take(tools).into_iter();
    *tools = kept
        .filter_map(|entry| {
            if entry.owner() == owner {
                namesake(&entry)
            } else {
                Some(entry)
            }
        })
        .collect();
    tools.extend(entries.into_iter().flatten());
}

/// Moves the tools of `owners` together, in their order. Returns `true` if that changed something.
fn arrange(tools: &mut Vec<Arc<ToolEntry>>, owners: &[Owner]) -> bool {
    let place = |entry: &Arc<ToolEntry>| owners.iter().position(|owner| owner == entry.owner());
    let (mut moved, stay): (Vec<_>, Vec<_>) = tools.iter().cloned().partition(|entry| place(entry).is_some());
    // Stable, so the tools of one owner keep their order.
    moved.sort_by_key(place);
    let first = tools.iter().position(|entry| place(entry).is_some()).unwrap_or(0);
    let mut arranged = stay;
    arranged.splice(first..first, moved);
    let is_same = arranged.iter().zip(&*tools).all(|(new, old)| Arc::ptr_eq(new, old));
    *tools = arranged;
    !is_same
}

impl ToolRegistry for InMemoryToolRegistry {
    fn snapshot(&self) -> Arc<ToolSnapshot> {
        self.current.load_full()
    }

    fn register(&self, owner: &Owner, tool: Tool) -> Result<(), RegistryError> {
        let entry = ToolEntry::new(owner, tool)?;
        self.change(|_, tools| {
            tools.push(entry);
            Ok(((), true))
        })
    }

    fn unregister(&self, owner: &Owner, name: &ToolName) -> Result<bool, RegistryError> {
        self.change(|current, tools| match current.find(name.as_str()) {
            None => Ok((false, false)),
            Some(entry) if entry.owner() != owner => Err(RegistryError::NotOwner {
                name: name.clone(),
                owner: entry.owner().clone(),
            }),
            Some(entry) => {
                tools.retain(|other| !Arc::ptr_eq(other, entry));
                Ok((true, true))
            }
        })
    }

    fn replace_source(&self, owner: &Owner, tools: Vec<Tool>) -> Result<(), RegistryError> {
        let entries = tools
            .into_iter()
            .map(|tool| ToolEntry::new(owner, tool))
            .collect::<Result<Vec<_>, _>>()?;
        self.change(|_, tools| {
            replace(tools, owner, entries);
            Ok(((), true))
        })
    }

    fn arrange(&self, owners: &[Owner]) {
        // Another order of the same tools is always valid.
        let _ = self.change(|_, tools| Ok(((), arrange(tools, owners))));
    }

    fn watch(&self) -> watch::Receiver<u64> {
        self.generations.subscribe()
    }
}
