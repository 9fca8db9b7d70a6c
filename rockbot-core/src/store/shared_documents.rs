//! Documents that the processes of an agent change one after another.

use std::fmt;

use async_trait::async_trait;

use super::StoreError;
use crate::shared::share;

/// A store of a few documents that several processes change, each change from the latest state on:
/// the schedule of an agent.
///
/// A change locks the document, and replaces or releases it. A lock ends after ten seconds by
/// itself, since its process may have died, and then the document cannot be replaced by it any
/// more.
#[async_trait]
pub trait SharedDocuments: fmt::Debug + Send + Sync + 'static {
    /// Returns the version of the document `name`, which grows with each change; 0 if there is none.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    async fn version(&self, name: &str) -> Result<u64, StoreError>;

    /// Locks the document `name`, whether or not there is one, and returns it. Waits for another
    /// change for at most 15 seconds.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be written, or if the document stays locked.
    async fn lock(&self, name: &str) -> Result<LockedDocument, StoreError>;

    /// Replaces a locked document by `json`, and returns the new version.
    ///
    /// # Errors
    ///
    /// Returns an error of the kind [`Conflict`](super::StoreErrorKind::Conflict) if the lock has
    /// ended, or an error if the store cannot be written. The document stays as it was.
    async fn replace(&self, locked: LockedDocument, json: String) -> Result<u64, StoreError>;

    /// Releases a locked document without a change. A failure has no effect but that the lock ends by
    /// itself.
    async fn release(&self, locked: LockedDocument);
}

share! {
    SharedDocuments {
        async version<'a>(name: &'a str) -> Result<u64, StoreError>;
        async lock<'a>(name: &'a str) -> Result<LockedDocument, StoreError>;
        async replace(locked: LockedDocument, json: String) -> Result<u64, StoreError>;
        async release(locked: LockedDocument);
    }
}

/// A document that a process has locked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockedDocument {
    /// The name.
    pub name: String,
    /// The version; 0 if there is no document yet.
    pub version: u64,
    /// The content; `None` if there is no document yet.
    pub json: Option<String>,
    /// The number of the lock, which grows with each lock.
    pub fence: u64,
}

impl LockedDocument {
    /// Creates the document of a lock: for implementers of [`SharedDocuments`].
    pub fn new(name: impl Into<String>, version: u64, json: Option<String>, fence: u64) -> Self {
        Self {
            name: name.into(),
            version,
            json,
            fence,
        }
    }
}
