//! Scheduled tasks as a document that the processes of an agent share.

use std::sync::Arc;

use rockbot_core::store::{LockedDocument, SharedDocuments, StoreError};
use tokio::runtime::Handle;

/// The document with the tasks of an agent.
#[derive(Debug, Clone)]
pub(super) struct SharedTasks {
    documents: Arc<dyn SharedDocuments>,
    name: String,
}

/// The document for a change. It is released when it is dropped without a change.
#[derive(Debug)]
pub(super) struct SharedLock {
    documents: Arc<dyn SharedDocuments>,
    locked: Option<LockedDocument>,
}

impl SharedTasks {
    pub(super) fn new(documents: Arc<dyn SharedDocuments>, agent: &str) -> Self {
        let name = format!("{agent}/scheduled-tasks");
        Self { documents, name }
    }

    pub(super) async fn version(&self) -> Result<u64, StoreError> {
        self.documents.version(&self.name).await
    }

    pub(super) async fn lock(&self) -> Result<SharedLock, StoreError> {
        let locked = self.documents.lock(&self.name).await?;
        Ok(SharedLock {
            documents: self.documents.clone(),
            locked: Some(locked),
        })
    }
}

impl SharedLock {
    pub(super) fn document(&self) -> Option<&LockedDocument> {
        self.locked.as_ref()
    }

    /// Replaces the document, and returns its new version.
    pub(super) async fn replace(mut self, json: String) -> Result<u64, StoreError> {
        match self.locked.take() {
            Some(locked) => self.documents.replace(locked, json).await,
            None => Ok(0),
        }
    }
}

impl Drop for SharedLock {
    fn drop(&mut self) {
        // Without a runtime the lock ends by itself.
        if let (Some(locked), Ok(runtime)) = (self.locked.take(), Handle::try_current()) {
            let documents = self.documents.clone();
            runtime.spawn(async move { documents.release(locked).await });
        }
    }
}
