//! Skills: procedures that the agent has learned and written down.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::per_principal::PerPrincipal;
use super::{StoreError, StorePath};
use crate::chat::Provenance;
use crate::search::{Bm25Ranker, Ranked};
use crate::shared::share;
use crate::{Principal, Timestamp};

/// A store of skills, by name.
#[async_trait]
pub trait SkillStore: fmt::Debug + Send + Sync + 'static {
    /// Returns the skill named `name`.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    async fn get(&self, principal: &Principal, name: &StorePath) -> Result<Option<Arc<Skill>>, StoreError>;

    /// Stores a skill. It replaces a skill of the same name.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be written.
    async fn save(&self, principal: &Principal, skill: Skill) -> Result<(), StoreError>;

    /// Deletes a skill. Returns `true` if it existed.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be written.
    async fn delete(&self, principal: &Principal, name: &StorePath) -> Result<bool, StoreError>;

    /// Returns all skills, including archived skills, in the order of their names.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<Skill>>, StoreError>;

    /// Returns the `limit` skills that match `query` best, best first; archived skills and skills
    /// with none of its words are skipped.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    async fn search(
        &self,
        principal: &Principal,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Ranked<Arc<Skill>>>, StoreError> {
        let mut skills = self.list(principal).await?;
        skills.retain(|skill| skill.is_live());
        let mut found = Bm25Ranker::default().rank_with_scores(skills, |skill| skill.searched_text().into(), query);
        found.truncate(limit);
        Ok(found)
    }
}

share! {
    SkillStore {
        async get<'a, 'b>(principal: &'a Principal, name: &'b StorePath) -> Result<Option<Arc<Skill>>, StoreError>;
        async save<'a>(principal: &'a Principal, skill: Skill) -> Result<(), StoreError>;
        async delete<'a, 'b>(principal: &'a Principal, name: &'b StorePath) -> Result<bool, StoreError>;
        async list<'a>(principal: &'a Principal) -> Result<Vec<Arc<Skill>>, StoreError>;
        async search<'a, 'b>(principal: &'a Principal, query: &'b str, limit: usize) -> Result<Vec<Ranked<Arc<Skill>>>, StoreError>;
    }
}

/// An earlier text of a skill that a new text replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SkillVersion {
    /// Purpose, in one sentence; empty until written.
    #[serde(default)]
    pub summary: String,
    /// Instructions, as Markdown.
    pub content: String,
    /// Time of the last change.
    #[serde(default, with = "crate::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// Provenance of the text.
    #[serde(default = "super::unknown_provenance")]
    pub provenance: Provenance,
}

/// A procedure that the agent knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Skill {
    /// Name, such as `mcp/email`.
    pub name: StorePath,
    /// Purpose, in one sentence; empty until written.
    #[serde(default)]
    pub summary: String,
    /// Instructions, as Markdown.
    pub content: String,
    /// Time of creation.
    #[serde(with = "crate::rfc3339")]
    pub created_at: Timestamp,
    /// Time of the last change.
    #[serde(default, with = "crate::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// Time of the last use.
    #[serde(default, with = "crate::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    /// Time of archiving; searches, lists of the model and recall skip an archived skill.
    #[serde(default, with = "crate::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<Timestamp>,
    /// Related skills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub see_also: Vec<StorePath>,
    /// Further properties by name: for an imported skill its `license`, and its author's own notes as
    /// `metadata.author`. The framework does not interpret them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Provenance: a skill written after reading untrusted text is untrusted.
    #[serde(default = "super::unknown_provenance")]
    pub provenance: Provenance,
    /// Texts that were replaced, the newest first: at most [`Skill::MAX_VERSIONS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<SkillVersion>,
}

impl Skill {
    /// Maximum number of replaced texts that a skill keeps. Beyond it the oldest is dropped.
    pub const MAX_VERSIONS: usize = 5;

    /// Creates a skill without a summary and without related skills.
    pub fn new(name: StorePath, content: impl Into<String>, created_at: Timestamp, provenance: Provenance) -> Self {
        Self {
            name,
            summary: String::new(),
            content: content.into(),
            created_at,
            updated_at: None,
            last_used_at: None,
            archived_at: None,
            see_also: Vec::new(),
            metadata: BTreeMap::new(),
            provenance,
            versions: Vec::new(),
        }
    }

    /// Keeps the text of `before` and the texts that it replaced, so that they can be restored.
    #[must_use]
    pub fn replacing(mut self, before: &Self) -> Self {
        let version = SkillVersion {
            summary: before.summary.clone(),
            content: before.content.clone(),
            updated_at: Some(before.updated_at.unwrap_or(before.created_at)),
            provenance: before.provenance.clone(),
        };
        let earlier = before.versions.iter().filter(|version| version.content != self.content);
        self.versions = std::iter::once(version).chain(earlier.cloned()).collect();
        self.versions.truncate(Self::MAX_VERSIONS);
        self
    }

    /// Returns the skill with the text that was replaced last, or `None` if none was. The present
    /// text becomes the replaced one, so that this can be undone as well.
    pub fn with_last_version(&self) -> Option<Self> {
        let version = self.versions.first()?.clone();
        let restored = self
            .clone()
            .with_summary(version.summary)
            .with_content(version.content)
            .with_updated_at(version.updated_at)
            .with_provenance(version.provenance);
        Some(restored.replacing(self))
    }

    /// Sets the purpose, in one sentence; empty until written.
    #[must_use]
    pub fn with_summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = summary.into();
        self
    }

    /// Sets the time of the last change.
    #[must_use]
    pub fn with_updated_at(mut self, updated_at: impl Into<Option<Timestamp>>) -> Self {
        self.updated_at = updated_at.into();
        self
    }

    /// Sets the time of the last use.
    #[must_use]
    pub fn with_last_used_at(mut self, last_used_at: impl Into<Option<Timestamp>>) -> Self {
        self.last_used_at = last_used_at.into();
        self
    }

    /// Sets the time of archiving.
    #[must_use]
    pub fn with_archived_at(mut self, archived_at: impl Into<Option<Timestamp>>) -> Self {
        self.archived_at = archived_at.into();
        self
    }

    /// Sets the related skills.
    #[must_use]
    pub fn with_see_also(mut self, see_also: Vec<StorePath>) -> Self {
        self.see_also = see_also;
        self
    }

    /// Sets the further properties by name: for an imported skill its `license`, and its author's own
    /// notes as `metadata.author`.
    #[must_use]
    pub fn with_metadata(mut self, metadata: BTreeMap<String, String>) -> Self {
        self.metadata = metadata;
        self
    }

    /// Sets the provenance: a skill written after reading untrusted text is untrusted.
    #[must_use]
    pub fn with_provenance(mut self, provenance: Provenance) -> Self {
        self.provenance = provenance;
        self
    }

    /// Sets the instructions, as Markdown.
    #[must_use]
    pub fn with_content(mut self, content: impl Into<String>) -> Self {
        self.content = content.into();
        self
    }

    /// Sets the name, such as `mcp/email`.
    #[must_use]
    pub fn with_name(mut self, name: StorePath) -> Self {
        self.name = name;
        self
    }

    /// Returns `true` unless the skill is archived.
    pub fn is_live(&self) -> bool {
        self.archived_at.is_none()
    }

    /// Returns the text that searches match: the name and the summary; the instructions only while
    /// there is no summary.
    pub fn searched_text(&self) -> String {
        let purpose = if self.summary.trim().is_empty() {
            &self.content
        } else {
            &self.summary
        };
        format!("{}\n{purpose}", self.name)
    }
}

/// A [`SkillStore`] in memory, lost when the process ends.
#[derive(Debug, Default)]
pub struct InMemorySkillStore {
    skills: PerPrincipal<BTreeMap<StorePath, Arc<Skill>>>,
}

impl InMemorySkillStore {
    /// Creates an empty store.
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
            archived_at: None,
            see_also: Vec::new(),
            metadata: BTreeMap::new(),
            provenance: super::super::unknown_provenance(),
            versions: Vec::new(),
        };
        assert_eq!(skill, expected);
    }
}
