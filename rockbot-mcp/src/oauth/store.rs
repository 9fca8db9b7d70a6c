//! Stores of the tokens that servers have granted.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rockbot_core::files::{DataFolder, FileError};
use rockbot_core::{BoxError, ExposeSecret, Secret};

/// Folder of the documents.
const FOLDER: &str = "credentials";

/// Maximum size of a document, in bytes.
const MAX_BYTES: u64 = 256 << 10;

/// A store of the tokens that servers have granted: for each key one text with tokens, which is
/// never printed.
///
/// A key names a server with its address and its client, so that no other server gets the tokens.
/// Default: files in `mcp/credentials` of the host's data folder, which only the user of the
/// process may read; in memory without one.
#[async_trait]
pub trait CredentialStore: fmt::Debug + Send + Sync + 'static {
    /// Returns the text under `key`.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    async fn load(&self, key: &str) -> Result<Option<Secret>, BoxError>;

    /// Replaces the text under `key`.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not stored.
    async fn save(&self, key: &str, credentials: Secret) -> Result<(), BoxError>;

    /// Removes the text under `key`, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is still there.
    async fn clear(&self, key: &str) -> Result<(), BoxError>;
}

/// Credentials that end with the process.
#[derive(Debug, Default)]
pub struct InMemoryCredentials(Mutex<HashMap<String, Secret>>);

impl InMemoryCredentials {
    fn with<T>(&self, work: impl FnOnce(&mut HashMap<String, Secret>) -> T) -> T {
        // An insertion either happened or did not, so a poisoned map is consistent.
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl CredentialStore for InMemoryCredentials {
    async fn load(&self, key: &str) -> Result<Option<Secret>, BoxError> {
        Ok(self.with(|kept| kept.get(key).cloned()))
    }

    async fn save(&self, key: &str, credentials: Secret) -> Result<(), BoxError> {
        self.with(|kept| kept.insert(key.to_owned(), credentials));
        Ok(())
    }

    async fn clear(&self, key: &str) -> Result<(), BoxError> {
        self.with(|kept| kept.remove(key));
        Ok(())
    }
}

/// Credentials in files of the data folder, with mode 0600.
#[derive(Debug, Clone)]
pub(crate) struct CredentialFolder(pub(crate) Arc<DataFolder>);

impl CredentialFolder {
    /// Works with the folder on a thread that may wait for the disk.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&DataFolder) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, BoxError> {
        let folder = self.0.clone();
        Ok(tokio::task::spawn_blocking(move || work(&folder)).await??)
    }
}

fn file(key: &str) -> String {
    format!("{FOLDER}/{key}.json")
}

#[async_trait]
impl CredentialStore for CredentialFolder {
    async fn load(&self, key: &str) -> Result<Option<Secret>, BoxError> {
        let name = file(key);
        let bytes = self.with(move |folder| folder.read(&name, MAX_BYTES)).await?;
        let text = bytes.map(String::from_utf8).transpose()?;
        Ok(text.map(Secret::from))
    }

    async fn save(&self, key: &str, credentials: Secret) -> Result<(), BoxError> {
        let name = file(key);
        let replace = move |folder: &DataFolder| folder.replace(&name, credentials.expose_secret().as_bytes());
        self.with(replace).await
    }

    async fn clear(&self, key: &str) -> Result<(), BoxError> {
        let name = file(key);
        self.with(move |folder| folder.remove(&name).map(drop)).await
    }
}
