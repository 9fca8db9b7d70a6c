//! Skills in files: [`FileSkillStore`].
//!
//! A skill is one JSON document, `{name}.json`, whose name may be nested; skills of the principal
//! `local` are in the folder itself, skills of other principals in `@{principal}/`. People may
//! add, change and remove these files. The name of the skill is the name of the file;
//! `createdAt`, when it is missing, is the modification time.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::Principal;
use rockbot_core::search::Ranked;
use rockbot_core::store::{Skill, SkillStore, StoreError, StorePath};

use crate::FileOptions;
use crate::storage::documents::{Collection, DocumentStore};

/// A [`SkillStore`] in a folder, which one process at a time can open.
///
/// A write resolves when it is synced to disk. Skills of at most 256 principals are cached with
/// an index of their names and summaries; the files are the source of truth. An external edit is
/// seen after 2 seconds, or after 20 times the duration of a rescan, whichever is longer; a
/// folder of more than 200 files is rescanned in the background, so that the read after next may
/// be the first to see it. A skill has at most 8 MiB as JSON.
#[derive(Debug)]
pub struct FileSkillStore {
    documents: Arc<DocumentStore<Skill>>,
}

impl FileSkillStore {
    /// Opens the skills in `folder`, creating it if it is missing, with the default options.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder is open already, here or in another process, or if it cannot be
    /// created.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_with(folder, FileOptions::default())
    }

    /// Opens the skills in `folder` with `options`.
    ///
    /// # Errors
    ///
    /// Returns an error under the same conditions as [`FileSkillStore::open`].
    pub fn open_with(folder: impl Into<PathBuf>, options: FileOptions) -> Result<Self, StoreError> {
        Ok(Self {
            documents: Arc::new(DocumentStore::open(folder.into(), options.clock)?),
        })
    }

    /// Returns the number of files that were quarantined because they could not be read.
    pub fn damaged(&self) -> u64 {
        self.documents.damaged()
    }
}

#[async_trait]
impl SkillStore for FileSkillStore {
    async fn get(&self, principal: &Principal, name: &StorePath) -> Result<Option<Arc<Skill>>, StoreError> {
        self.documents.read(principal, |skills| skills.get(name).cloned()).await
    }

    async fn save(&self, principal: &Principal, skill: Skill) -> Result<(), StoreError> {
        let skill = Arc::new(skill);
        self.documents
            .write(principal, move |_| (Some(skill.clone()), ()))
            .await
    }

    async fn delete(&self, principal: &Principal, name: &StorePath) -> Result<bool, StoreError> {
        let deleted = self.documents.delete(principal, name.clone()).await?;
        Ok(deleted.is_some())
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<Skill>>, StoreError> {
        let list = |skills: &Collection<Skill>| skills.documents().cloned().collect();
        self.documents.read(principal, list).await
    }

    async fn search(
        &self,
        principal: &Principal,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Ranked<Arc<Skill>>>, StoreError> {
        let search = |skills: &Collection<Skill>| skills.search(query, limit, |skill| skill.is_live());
        self.documents.read(principal, search).await
    }
}
