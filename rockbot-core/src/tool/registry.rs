//! The directory of tools: immutable snapshots, swapped whole.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::watch;

use super::{ArgumentSchema, SchemaError, Tool, ToolExecutor, ToolRegistration, ToolView};
use crate::ToolName;

/// Where tools are registered and found.
///
/// Readers take a [`ToolSnapshot`], which never changes; writers make a new one with a higher generation. A
/// name stands once in a registry: registering it again is an error, never a silent replacement.
pub trait ToolRegistry: fmt::Debug + Send + Sync + 'static {
    /// All tools, as they are now.
    fn snapshot(&self) -> Arc<ToolSnapshot>;

    /// Adds a tool that belongs to `owner`.
    ///
    /// # Errors
    ///
    /// Fails when the name is taken or not valid, the description is empty, or the schema cannot be used.
    fn register(&self, owner: &Owner, tool: Tool) -> Result<(), RegistryError>;

    /// Removes a tool of `owner`. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// Fails when the tool belongs to somebody else.
    fn unregister(&self, owner: &Owner, name: &ToolName) -> Result<bool, RegistryError>;

    /// Makes `tools` the tools of `owner`: adds, replaces and removes in one step that nobody sees half done.
    ///
    /// # Errors
    ///
    /// Fails as [`ToolRegistry::register`] does; then nothing has changed.
    fn replace_source(&self, owner: &Owner, tools: Vec<Tool>) -> Result<(), RegistryError>;

    /// Sees every new generation.
    fn watch(&self) -> watch::Receiver<u64>;
}

/// Who registered a tool. Only the holder of the token can replace or remove it.
#[derive(Clone)]
pub struct Owner(Arc<str>);

impl Owner {
    /// A new owner; `name` is for messages only, two owners of one name are still two.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Owner {}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({})", self.0)
    }
}

/// Why a tool cannot be registered or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The name is taken.
    #[error("a tool named `{0}` is registered already: unregister it first or choose another name")]
    Duplicate(ToolName),
    /// The name has other characters, none, or too many.
    #[error("`{0}` cannot name a tool: use 1 to 64 characters of A-Z a-z 0-9 _ -")]
    InvalidName(ToolName),
    /// A model cannot choose a tool that says nothing about itself.
    #[error("tool `{0}` has no description: write a doc comment on its arguments or call `.description(…)`")]
    NoDescription(ToolName),
    /// The schema cannot be used to check arguments.
    #[error("the parameters schema of tool `{name}` cannot be used: {source}")]
    InvalidSchema {
        /// The tool.
        name: ToolName,
        /// What is wrong with it.
        source: SchemaError,
    },
    /// The tool belongs to another owner.
    #[error("tool `{name}` belongs to {owner:?}: only its owner can remove it")]
    NotOwner {
        /// The tool.
        name: ToolName,
        /// Whose it is.
        owner: Owner,
    },
}

/// A tool in a registry.
#[derive(Debug)]
pub struct ToolEntry {
    registration: ToolRegistration,
    executor: Arc<dyn ToolExecutor>,
    arguments: ArgumentSchema,
    definition: String,
    owner: Owner,
}

impl ToolEntry {
    fn new(owner: &Owner, tool: Tool) -> Result<Arc<Self>, RegistryError> {
        let Tool { registration, executor } = tool;
        let name = &registration.name;
        if !name.is_valid() {
            return Err(RegistryError::InvalidName(name.clone()));
        }
        if registration.description.trim().is_empty() {
            return Err(RegistryError::NoDescription(name.clone()));
        }
        let arguments = ArgumentSchema::compile(&registration.parameters_schema).map_err(|source| {
            RegistryError::InvalidSchema {
                name: name.clone(),
                source,
            }
        })?;
        let definition = registration.to_llm_tool_definition();
        Ok(Arc::new(Self {
            registration,
            executor,
            arguments,
            definition,
            owner: owner.clone(),
        }))
    }

    /// What the tool says about itself.
    pub fn registration(&self) -> &ToolRegistration {
        &self.registration
    }

    /// What runs its calls.
    pub fn executor(&self) -> &Arc<dyn ToolExecutor> {
        &self.executor
    }

    /// What its arguments must look like.
    pub fn arguments(&self) -> &ArgumentSchema {
        &self.arguments
    }

    /// The tool's definition for a model, as JSON text.
    pub fn definition(&self) -> &str {
        &self.definition
    }

    /// Who registered it.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }
}

/// All tools of a registry at one moment, ordered by name.
#[derive(Debug, Default)]
pub struct ToolSnapshot {
    generation: u64,
    entries: Arc<[Arc<ToolEntry>]>,
    by_name: HashMap<ToolName, Arc<ToolEntry>>,
    view: OnceLock<ToolView>,
}

impl ToolSnapshot {
    fn new(generation: u64, by_name: HashMap<ToolName, Arc<ToolEntry>>) -> Self {
        let mut entries: Vec<_> = by_name.values().cloned().collect();
        entries.sort_by(|a, b| a.registration.name.cmp(&b.registration.name));
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

/// The registry of a process.
pub struct InMemoryToolRegistry {
    current: ArcSwap<ToolSnapshot>,
    /// Held by writers, so that no change is lost between reading a snapshot and swapping it.
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
    /// A registry without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets `change` edit a copy of the tools, and swaps it in when that succeeded and changed something.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut HashMap<ToolName, Arc<ToolEntry>>) -> Result<(T, bool), RegistryError>,
    ) -> Result<T, RegistryError> {
        // The guarded value is `()`: a panic elsewhere cannot have left it half changed.
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current.load_full();
        let mut tools = current.by_name.clone();
        let (result, changed) = change(&mut tools)?;
        if changed {
            let generation = current.generation + 1;
            self.current.store(Arc::new(ToolSnapshot::new(generation, tools)));
            self.generations.send_replace(generation);
        }
        Ok(result)
    }
}

fn insert(tools: &mut HashMap<ToolName, Arc<ToolEntry>>, entry: Arc<ToolEntry>) -> Result<(), RegistryError> {
    let name = entry.registration.name.clone();
    if tools.contains_key(&name) {
        return Err(RegistryError::Duplicate(name));
    }
    tools.insert(name, entry);
    Ok(())
}

impl ToolRegistry for InMemoryToolRegistry {
    fn snapshot(&self) -> Arc<ToolSnapshot> {
        self.current.load_full()
    }

    fn register(&self, owner: &Owner, tool: Tool) -> Result<(), RegistryError> {
        let entry = ToolEntry::new(owner, tool)?;
        self.change(|tools| insert(tools, entry).map(|()| ((), true)))
    }

    fn unregister(&self, owner: &Owner, name: &ToolName) -> Result<bool, RegistryError> {
        self.change(|tools| match tools.get(name) {
            None => Ok((false, false)),
            Some(entry) if entry.owner != *owner => Err(RegistryError::NotOwner {
                name: name.clone(),
                owner: entry.owner.clone(),
            }),
            Some(_) => Ok((tools.remove(name).is_some(), true)),
        })
    }

    fn replace_source(&self, owner: &Owner, tools: Vec<Tool>) -> Result<(), RegistryError> {
        let entries = tools
            .into_iter()
            .map(|tool| ToolEntry::new(owner, tool))
            .collect::<Result<Vec<_>, _>>()?;
        self.change(|tools| {
            tools.retain(|_, entry| entry.owner != *owner);
            entries.into_iter().try_for_each(|entry| insert(tools, entry))?;
            Ok(((), true))
        })
    }

    fn watch(&self) -> watch::Receiver<u64> {
        self.generations.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use std::thread;

    use super::*;
    use crate::testing::{conformance, mock_tool};

    const THREADS: usize = 64;

    fn tool(name: &str) -> Tool {
        mock_tool(name).0
    }

    fn names(snapshot: &ToolSnapshot) -> Vec<&str> {
        let entries = snapshot.entries().iter();
        entries.map(|entry| entry.registration().name.as_str()).collect()
    }

    /// What holds for every snapshot, whoever is writing meanwhile.
    fn check(snapshot: &ToolSnapshot) {
        let names = names(snapshot);
        assert!(names.is_sorted_by(|a, b| a < b), "ordered, each name once: {names:?}");
        assert_eq!(snapshot.by_name.len(), names.len());
        for (name, entry) in names.iter().zip(snapshot.entries()) {
            assert!(snapshot.find(name).is_some_and(|found| Arc::ptr_eq(found, entry)));
        }
        assert!(snapshot.view().names().eq(names));
        assert_eq!(snapshot.view().generation(), snapshot.generation());
    }

    /// Runs `work` in 64 threads that start together.
    fn in_threads(work: impl Fn(usize, &Barrier) + Sync) {
        let barrier = Barrier::new(THREADS);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (work, barrier) = (&work, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    work(thread, barrier);
                });
            }
        });
    }

    #[tokio::test]
    async fn keeps_the_promises_of_a_registry() {
        conformance::tool_registry(async || InMemoryToolRegistry::new()).await;
    }

    #[test]
    fn no_change_is_lost_when_many_threads_write() {
        let registry = InMemoryToolRegistry::new();
        let shared_names: Vec<_> = (0..8).map(|n| format!("shared_{n}")).collect();
        let holders: Vec<_> = shared_names.iter().map(|_| AtomicUsize::new(0)).collect();
        let changes = AtomicU64::new(0);
        in_threads(|thread, _| {
            let owner = Owner::new("thread");
            registry.register(&owner, tool(&format!("own_{thread}"))).unwrap();
            changes.fetch_add(1, Ordering::Relaxed);
            let mut generation = 0;
            for round in 0..40 {
                let index = (thread + round) % shared_names.len();
                let name = &shared_names[index];
                match registry.register(&owner, tool(name)) {
                    Ok(()) => {
                        assert_eq!(
                            holders[index].fetch_add(1, Ordering::SeqCst),
                            0,
                            "two threads hold {name}"
                        );
                        let snapshot = registry.snapshot();
                        assert_eq!(snapshot.find(name).map(|entry| entry.owner()), Some(&owner));
                        holders[index].fetch_sub(1, Ordering::SeqCst);
                        assert!(registry.unregister(&owner, &ToolName::from(&**name)).unwrap());
                        changes.fetch_add(2, Ordering::Relaxed);
                    }
                    Err(error) => assert!(matches!(error, RegistryError::Duplicate(taken) if taken == **name)),
                }
                let snapshot = registry.snapshot();
                check(&snapshot);
                assert!(snapshot.find(&format!("own_{thread}")).is_some());
                assert!(snapshot.generation() >= generation, "a reader never goes back");
                generation = snapshot.generation();
            }
        });
        let snapshot = registry.snapshot();
        let expected: BTreeSet<_> = (0..THREADS).map(|thread| format!("own_{thread}")).collect();
        assert!(names(&snapshot).into_iter().eq(&expected));
        assert_eq!(
            snapshot.generation(),
            changes.into_inner(),
            "every change made one generation"
        );
        assert_eq!(*registry.watch().borrow(), snapshot.generation());
    }

    #[test]
    fn of_many_that_want_a_name_one_gets_it() {
        const ROUNDS: usize = 100;
        let registry = InMemoryToolRegistry::new();
        let winners: Vec<_> = (0..ROUNDS).map(|_| AtomicUsize::new(0)).collect();
        in_threads(|_, barrier| {
            let owner = Owner::new("thread");
            for (round, winners) in winners.iter().enumerate() {
                let name = format!("tool_{round}");
                barrier.wait();
                match registry.register(&owner, tool(&name)) {
                    Ok(()) => drop(winners.fetch_add(1, Ordering::Relaxed)),
                    Err(error) => assert!(matches!(error, RegistryError::Duplicate(taken) if taken == *name)),
                }
            }
        });
        let winners: Vec<_> = winners.into_iter().map(AtomicUsize::into_inner).collect();
        assert_eq!(winners, [1; ROUNDS]);
        assert_eq!(registry.snapshot().generation(), ROUNDS as u64);
    }

    #[test]
    fn a_source_is_never_seen_half_replaced() {
        let registry = InMemoryToolRegistry::new();
        let sets = ["a", "b"].map(|set| (0..8).map(|n| format!("{set}_{n}")).collect::<Vec<_>>());
        in_threads(|thread, _| {
            // One thread writes: its tools are its own.
            if thread == 0 {
                let owner = Owner::new("writer");
                for round in 0..200 {
                    let tools = sets[round % 2].iter().map(|name| tool(name)).collect();
                    registry.replace_source(&owner, tools).unwrap();
                }
            } else {
                for _ in 0..50 {
                    let snapshot = registry.snapshot();
                    check(&snapshot);
                    let seen = names(&snapshot);
                    assert!(
                        seen.is_empty() || seen == sets[0] || seen == sets[1],
                        "half replaced: {seen:?}"
                    );
                    thread::yield_now();
                }
            }
        });
        assert_eq!(names(&registry.snapshot()), sets[1]);
    }
}
