//! What the parts of a host give each other.

use std::any::{Any, TypeId, type_name};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{AgentIdentity, BoxError, Clock};

/// What a host has: its identity, its folder, and one slot for each type of part.
///
/// When subsystems start, these are there besides what they and the builder gave: the way to the host's models
/// (`dyn ChatClient`, with its layers, meters and ledger; it is idle when no turn works), its conversations
/// (`dyn ConversationMemory`) and its guides to tools ([`ToolGuides`](crate::tool::ToolGuides)). Nobody has to declare a
/// need of them. The settings of a host that was given some (`Config`) are there before: a subsystem reads the sections that
/// are its own while it declares.
///
/// ```
/// use std::sync::Arc;
/// use rockbot_core::store::{FeedbackStore, InMemoryFeedbackStore};
/// use rockbot_core::subsystem::Parts;
/// use rockbot_core::{AgentIdentity, SystemClock};
///
/// let mut parts = Parts::new(AgentIdentity::new("clerk"), Arc::new(SystemClock), None);
/// assert!(parts.get::<dyn FeedbackStore>().is_none());
/// parts.provide::<dyn FeedbackStore>(Arc::new(InMemoryFeedbackStore::new()));
/// assert!(parts.get::<dyn FeedbackStore>().is_some());
/// ```
#[derive(Clone)]
pub struct Parts {
    identity: AgentIdentity,
    clock: Arc<dyn Clock>,
    data_dir: Option<PathBuf>,
    slots: BTreeMap<TypeId, Slot>,
}

#[derive(Clone)]
struct Slot {
    name: &'static str,
    part: Arc<dyn Any + Send + Sync>,
}

impl Parts {
    /// The parts of the agent `identity`, none yet.
    pub fn new(identity: AgentIdentity, clock: Arc<dyn Clock>, data_dir: Option<PathBuf>) -> Self {
        Self {
            identity,
            clock,
            data_dir,
            slots: BTreeMap::new(),
        }
    }

    /// The agent.
    pub fn identity(&self) -> &AgentIdentity {
        &self.identity
    }

    /// The host's wall clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The folder for everything that must outlive the process; `None` when nothing must.
    pub fn data_dir(&self) -> Option<&Path> {
        self.data_dir.as_deref()
    }

    /// Gives the part of type `T`; returns whether there was none yet. The first one stays.
    pub fn provide<T: ?Sized + Send + Sync + 'static>(&mut self, part: Arc<T>) -> bool {
        let is_free = !self.slots.contains_key(&TypeId::of::<T>());
        self.slots.entry(TypeId::of::<T>()).or_insert_with(|| Slot {
            name: type_name::<T>(),
            part: Arc::new(part),
        });
        is_free
    }

    /// The part of type `T`, if the host has one.
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let slot = self.slots.get(&TypeId::of::<T>())?;
        slot.part.downcast_ref::<Arc<T>>().cloned()
    }

    /// The part of type `T`.
    ///
    /// # Errors
    ///
    /// Fails when the host has none: a subsystem that declared its need never sees that.
    pub fn need<T: ?Sized + Send + Sync + 'static>(&self) -> Result<Arc<T>, BoxError> {
        let missing = || format!("the host has no `{}`", type_name::<T>()).into();
        self.get::<T>().ok_or_else(missing)
    }

    pub(super) fn has(&self, slot: TypeId) -> bool {
        self.slots.contains_key(&slot)
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.slots.values().map(|slot| slot.name).collect();
        f.debug_struct("Parts")
            .field("identity", &self.identity)
            .field("data_dir", &self.data_dir)
            .field("slots", &names)
            .finish_non_exhaustive()
    }
}
