//! Skills: what the agent has learned to do, written down for itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::per_principal::PerPrincipal;
use super::{StoreError, StorePath};
use crate::chat::Provenance;
use crate::search::{Bm25Ranker, Ranked};
use crate::{Principal, Timestamp};

/// Remembers skills by name.
#[async_trait]
pub trait SkillStore: fmt::Debug + Send + Sync + 'static {
    /// The skill named `name`.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be read.
    async fn get(&self, principal: &Principal, name: &StorePath) -> Result<Option<Arc<Skill>>, StoreError>;

    /// Keeps a skill, in place of one of the same name.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be written.
    async fn save(&self, principal: &Principal, skill: Skill) -> Result<(), StoreError>;

    /// Removes a skill. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be written.
    async fn delete(&self, principal: &Principal, name: &StorePath) -> Result<bool, StoreError>;

    /// All skills, in the order of their names.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be read.
    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<Skill>>, StoreError>;

    /// The `limit` skills that fit `query` best, the best first; those that have no word of it are left out.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be read.
    async fn search(
        &self,
        principal: &Principal,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Ranked<Arc<Skill>>>, StoreError> {
        let skills = self.list(principal).await?;
        let mut found = Bm25Ranker::default().rank_with_scores(skills, |skill| skill.searched_text().into(), query);
        found.truncate(limit);
        Ok(found)
    }
}

/// Something that the agent knows how to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    /// Its name, such as `mcp/email`.
    pub name: StorePath,
    /// What it is for, in a sentence; empty until somebody writes one.
    #[serde(default)]
    pub summary: String,
    /// How it is done: Markdown.
    pub content: String,
    /// When it was written first.
    #[serde(with = "crate::rfc3339")]
    pub created_at: Timestamp,
    /// When it was changed last.
    #[serde(default, with = "crate::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// When it was read last.
    #[serde(default, with = "crate::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    /// Which skills are of use together with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub see_also: Vec<StorePath>,
    /// What else is known of it, by name: of a skill from elsewhere its `license`, and its author's own notes as
    /// `metadata.author`. No rule of ours reads it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Where it came from: one written after reading untrusted text is not trusted itself.
    #[serde(default = "super::unknown_provenance")]
    pub provenance: Provenance,
}

impl Skill {
    /// What searches look at: the name and what the skill is for; how it is done only while nobody has written what
    /// for.
    pub fn searched_text(&self) -> String {
        let purpose = if self.summary.trim().is_empty() {
            &self.content
        } else {
            &self.summary
        };
        format!("{}\n{purpose}", self.name)
    }
}

/// Skills of a process: gone when it ends.
#[derive(Debug, Default)]
pub struct InMemorySkillStore {
    skills: PerPrincipal<BTreeMap<StorePath, Arc<Skill>>>,
}

impl InMemorySkillStore {
    /// A store without skills.
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl SkillStore for InMemorySkillStore {
    async fn get(&self, principal: &Principal, name: &StorePath) -> Result<Option<Arc<Skill>>, StoreError> {
        Ok(self.skills.read(principal, |skills| skills.get(name).cloned()))
    }

    async fn save(&self, principal: &Principal, skill: Skill) -> Result<(), StoreError> {
        self.skills
            .write(principal, |skills| skills.insert(skill.name.clone(), Arc::new(skill)));
        Ok(())
    }

    async fn delete(&self, principal: &Principal, name: &StorePath) -> Result<bool, StoreError> {
        Ok(self.skills.write(principal, |skills| skills.remove(name).is_some()))
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<Skill>>, StoreError> {
        Ok(self.skills.read(principal, |skills| skills.values().cloned().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::conformance;

    #[tokio::test]
    async fn keeps_the_promises_of_a_skill_store() {
        conformance::skill_store(async || InMemorySkillStore::new()).await;
    }

    #[test]
    fn a_document_of_another_program_opens() {
        let json = r#"{"name":"mcp/email","summary":"","content":"…","createdAt":"2026-01-01T00:00:00+00:00","updatedAt":null}"#;
        let skill: Skill = serde_json::from_str(json).unwrap();
        let expected = Skill {
            name: StorePath::new("mcp/email").unwrap(),
            summary: String::new(),
            content: "…".to_owned(),
            created_at: Timestamp::from_millis(1_767_225_600_000),
            updated_at: None,
            last_used_at: None,
            see_also: Vec::new(),
            metadata: BTreeMap::new(),
            provenance: super::super::unknown_provenance(),
        };
        assert_eq!(skill, expected);
    }
}
