//! Long-term memory: facts that outlive their conversation.
//!
//! Search is not part of the store yet: it comes with the ranking, as an index that is kept beside the entries.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::per_principal::PerPrincipal;
use super::{StoreError, StorePath};
use crate::chat::Provenance;
use crate::{MemoryId, Principal, Timestamp};

/// Remembers facts.
#[async_trait]
pub trait LongTermMemory: fmt::Debug + Send + Sync + 'static {
    /// The entry `id`.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be read.
    async fn get(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError>;

    /// Keeps an entry, in place of one with the same id.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be written.
    async fn save(&self, principal: &Principal, entry: MemoryEntry) -> Result<(), StoreError>;

    /// Removes an entry and returns it.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be written.
    async fn delete(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError>;

    /// All entries, in the order of their ids.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be read.
    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<MemoryEntry>>, StoreError>;
}

/// A fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryEntry {
    /// The entry.
    pub id: MemoryId,
    /// The fact.
    pub content: String,
    /// Under what it is filed, such as `projects/rust`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<StorePath>,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// When it was written first.
    #[serde(with = "crate::rfc3339")]
    pub created_at: Timestamp,
    /// When it was changed last.
    #[serde(default, with = "crate::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// Anything else, for programs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// How much it matters, from 0 to 1: 0.5 unless somebody says otherwise.
    #[serde(default = "medium")]
    pub importance_score: f64,
    /// Where it came from: what was learned from untrusted text is not trusted.
    #[serde(default = "super::unknown_provenance")]
    pub provenance: Provenance,
}

fn medium() -> f64 {
    0.5
}

/// Long-term memory of a process: gone when it ends.
#[derive(Debug, Default)]
pub struct InMemoryLongTermMemory {
    entries: PerPrincipal<BTreeMap<MemoryId, Arc<MemoryEntry>>>,
}

impl InMemoryLongTermMemory {
    /// A memory without entries.
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl LongTermMemory for InMemoryLongTermMemory {
    async fn get(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        Ok(self.entries.read(principal, |entries| entries.get(id).cloned()))
    }

    async fn save(&self, principal: &Principal, entry: MemoryEntry) -> Result<(), StoreError> {
        self.entries
            .write(principal, |entries| entries.insert(entry.id.clone(), Arc::new(entry)));
        Ok(())
    }

    async fn delete(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        Ok(self.entries.write(principal, |entries| entries.remove(id)))
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<MemoryEntry>>, StoreError> {
        Ok(self
            .entries
            .read(principal, |entries| entries.values().cloned().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::conformance;

    #[tokio::test]
    async fn keeps_the_promises_of_a_long_term_memory() {
        conformance::long_term_memory(async || InMemoryLongTermMemory::new()).await;
    }

    #[test]
    fn a_document_of_another_program_opens_as_untrusted() {
        let json = r#"{"id":"0123456789ab","content":"likes tea","category":"user/taste","tags":["tea"],"createdAt":"2026-01-01T00:00:00+00:00"}"#;
        let entry: MemoryEntry = serde_json::from_str(json).unwrap();
        assert_eq!(entry.importance_score, 0.5);
        assert_eq!(entry.provenance, super::super::unknown_provenance());
        let back: MemoryEntry = serde_json::from_str(&serde_json::to_string(&entry).unwrap()).unwrap();
        assert_eq!(back, entry);
    }
}
