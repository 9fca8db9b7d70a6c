//! The skills that survive the process.

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
/// A write resolves when the disk has it. Skills are held in memory with an index of their names and purposes, those of
/// 256 principals at most; the files are the truth. What people change in them is seen 2 seconds later, or after 20
/// times as long as it takes to look at all files. A skill has at most 8 MiB as JSON.
#[derive(Debug)]
pub struct FileSkillStore {
    documents: Arc<DocumentStore<Skill>>,
}

impl FileSkillStore {
    /// Opens the skills in `folder`, which is made if it is missing, with the default options.
    ///
    /// # Errors
    ///
    /// Fails when the folder is open already, here or in another process, and when it cannot be made.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_with(folder, FileOptions::default())
    }

    /// Opens the skills in `folder` with `options`.
    ///
    /// # Errors
    ///
    /// Fails as [`FileSkillStore::open`] does.
    pub fn open_with(folder: impl Into<PathBuf>, options: FileOptions) -> Result<Self, StoreError> {
        Ok(Self {
            documents: Arc::new(DocumentStore::open(folder.into(), options.clock)?),
        })
    }

    /// How many files were set aside since they could not be read.
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
        let search = |skills: &Collection<Skill>| skills.search(query, limit, |_| true);
        self.documents.read(principal, search).await
    }
}
