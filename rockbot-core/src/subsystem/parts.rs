//! The parts that subsystems of a host provide to each other, found by their type.

use std::any::{Any, TypeId, type_name};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{AgentIdentity, BoxError, Clock};

/// The parts of a host: its identity, clock and data directory, and one slot for each type of part.
///
/// A subsystem that starts also finds these parts, without requiring them: the client of the
/// host's models with its layers, metrics and ledger (`dyn ChatClient`; it is idle while no turn
/// runs), that [`Ledger`](crate::chat::Ledger), the conversations (`dyn ConversationMemory`), the
/// entry point to the host's tools for callers outside (`dyn OutsideTools`), and the guides to tools
/// ([`ToolGuides`](crate::tool::ToolGuides)). The configuration of a host that was given one
/// (`Config`) is there earlier, while subsystems declare, so that each can read its own sections.
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
    /// Creates the parts of the agent `identity`, with all slots empty.
    pub fn new(identity: AgentIdentity, clock: Arc<dyn Clock>, data_dir: Option<PathBuf>) -> Self {
        Self {
            identity,
            clock,
            data_dir,
            slots: BTreeMap::new(),
        }
    }

    /// Returns the identity of the agent.
    pub fn identity(&self) -> &AgentIdentity {
        &self.identity
    }

    /// Returns the host's wall clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns the directory for data that must outlive the process, or `None` if the host keeps
    /// everything in memory.
    pub fn data_dir(&self) -> Option<&Path> {
        self.data_dir.as_deref()
    }

    /// Provides the part of type `T`. Returns `false` if the slot is taken; the first part then stays.
    pub fn provide<T: ?Sized + Send + Sync + 'static>(&mut self, part: Arc<T>) -> bool {
        let is_free = !self.slots.contains_key(&TypeId::of::<T>());
        self.slots.entry(TypeId::of::<T>()).or_insert_with(|| Slot {
            name: type_name::<T>(),
            part: Arc::new(part),
        });
        is_free
    }

    /// Returns the part of type `T`, if the host has one.
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let slot = self.slots.get(&TypeId::of::<T>())?;
        slot.part.downcast_ref::<Arc<T>>().cloned()
    }

    /// Returns the part of type `T`.
    ///
    /// # Errors
    ///
    /// Returns an error if the host has no such part. A subsystem that required the part in its
    /// declarations never gets the error, because the host is not built without the part.
    pub fn require<T: ?Sized + Send + Sync + 'static>(&self) -> Result<Arc<T>, BoxError> {
        let missing = || format!("the host has no `{}`", type_name::<T>()).into();
        self.get::<T>().ok_or_else(missing)
    }

    /// Returns `true` if the slot of this type is taken.
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
