//! Values of a caller's own, found by their type.
//!
//! Extensions of a request are in no journal: they are handles of the caller's process. A resumed
//! turn has no extensions, and its tools see that.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A set of values of the caller's own types, at most one value for each type.
///
/// A caller attaches them to a [request](crate::turn::TurnRequest::extensions), and the tools of
/// its turn find them in their [`CallContext`](crate::CallContext::extension). They live in
/// memory only: neither the journal nor a bus carries them. Cloning shares the values; an empty
/// set allocates nothing.
///
/// ```
/// use rockbot_core::context::Extensions;
///
/// #[derive(Debug, PartialEq)]
/// struct Tenant(u32);
///
/// let mut extensions = Extensions::new();
/// extensions.insert(Tenant(7));
/// assert_eq!(extensions.get(), Some(&Tenant(7)));
/// assert_eq!(extensions.get::<String>(), None);
/// ```
#[derive(Clone, Default)]
pub struct Extensions(BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Extensions {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Inserts `value`. It replaces an earlier value of its type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// Returns the value of type `T`.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// Returns `true` if there is no value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Inserts the values of `other`. They replace earlier values of their types.
    pub fn extend(&mut self, other: &Self) {
        let values = other.0.iter().map(|(key, value)| (*key, value.clone()));
        self.0.extend(values);
    }
}

impl PartialEq for Extensions {
    /// Returns `true` if both sets share the same values. Values are not compared, since they may
    /// have no equality.
    fn eq(&self, other: &Self) -> bool {
        let same = |((a, mine), (b, theirs)): (_, _)| a == b && Arc::ptr_eq(mine, theirs);
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Extensions").field(&self.0.len()).finish()
    }
}
