//! The context of one run of a pass for one principal: the stores that it reads, the model that
//! it asks, and its outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockbot_core::content::Provenance;
use rockbot_core::store::{LogOffset, MemoryEntry, StoreError, StorePath};
use rockbot_core::trust::Label;
use rockbot_core::{Digest, IdSource, MemoryId, Principal, Timestamp};
use serde::de::DeserializeOwned;

use super::ask::{AskError, Asker, Question};
use super::clusters::{Near, near};
use super::pass::DreamPass;
use super::plan::DreamChange;
use super::stores::Stores;
use super::times::rfc3339;
use crate::background::new_memory_id;

/// Maximum length of a text that a model writes, in characters.
const MAX_TEXT: usize = 4_000;

/// Maximum number of tags of a view.
const MAX_TAGS: usize = 20;

/// A plan that a pass drafts, before the checks.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) summary: String,
    pub(super) changes: Vec<DreamChange>,
    /// Question that the draft answers.
    pub(super) question: Option<Digest>,
}

/// The result of one run of a pass. Nothing of it is stored yet.
#[derive(Debug, Default)]
pub(super) struct PassOutcome {
    pub(super) drafts: Vec<Draft>,
    /// Questions that were answered in a usable way.
    pub(super) answered: Vec<Digest>,
    /// `true` if an answer could not be used: the same question would be answered in the same way.
    pub(super) has_unusable_answer: bool,
    /// Readers of the conversation log, each with the position that it has reached.
    pub(super) read: Vec<(String, LogOffset)>,
    /// Remarks for the log.
    pub(super) remarks: Vec<String>,
    /// Error after which the pass is tried again.
    pub(super) failure: Option<String>,
}

/// The context of one run of a pass for one principal.
pub(super) struct PassContext<'a> {
    pub(super) pass: DreamPass,
    pub(super) who: &'a Principal,
    pub(super) stores: &'a Stores,
    pub(super) ids: &'a dyn IdSource,
    pub(super) now: Timestamp,
    /// Questions that are not asked again: answered within 7 days, or with a plan that waits or was
    /// undone.
    pub(super) settled: &'a BTreeSet<Digest>,
    /// Memories of plans that a person undid.
    pub(super) declined: &'a BTreeSet<MemoryId>,
    pub(super) asker: Option<&'a Asker>,
    pub(super) outcome: PassOutcome,
}

impl PassContext<'_> {
    /// Asks the model, unless the question is settled or the budget is spent. Returns `None`
    /// without a usable answer; the reason is in the outcome.
    pub(super) async fn ask<T: DeserializeOwned>(&mut self, question: &Question) -> Option<(Digest, T)> {
        let digest = question.digest(self.pass, self.who);
        let asker = self.asker?;
        if self.settled.contains(&digest) || self.outcome.failure.is_some() {
            return None;
        }
        match asker.ask(self.pass, self.who, question).await {
            Ok(answer) => {
                self.outcome.answered.push(digest);
                Some((digest, answer))
            }
            Err(AskError::Spent) => {
                self.remark("the budget of the cycle is spent; the rest waits for the next one");
                None
            }
            Err(AskError::Answer(problem)) => {
                self.outcome.has_unusable_answer = true;
                self.remark(format!("the model's answer cannot be used: {problem}"));
                None
            }
            Err(AskError::Model(error)) => {
                self.outcome.failure = Some(error.to_string());
                None
            }
        }
    }

    /// Adds a remark for the log.
    pub(super) fn remark(&mut self, text: impl Into<String>) {
        self.outcome.remarks.push(text.into());
    }

    /// Adds a draft, unless the draft changes nothing.
    pub(super) fn draft(&mut self, summary: impl Into<String>, changes: Vec<DreamChange>, question: Option<Digest>) {
        if !changes.is_empty() {
            let summary = summary.into();
            self.outcome.drafts.push(Draft {
                summary,
                changes,
                question,
            });
        }
    }

    /// Returns the live memories, without the memories of plans that a person undid.
    pub(super) async fn live_memories(&self) -> Result<Vec<Arc<MemoryEntry>>, StoreError> {
        let mut entries = self.stores.memories(self.who).await?;
        entries.retain(|entry| entry.is_live() && !self.declined.contains(&entry.id));
        Ok(entries)
    }

    /// Returns the pairs of these memories that mean nearly the same; none without embeddings.
    pub(super) async fn near(&self, entries: &[Arc<MemoryEntry>]) -> Result<Near, StoreError> {
        match &self.stores.memory {
            Some(memory) => near(&**memory, self.who, entries).await,
            None => Ok(Near::new()),
        }
    }

    /// Creates a view: a memory that was made of other memories, with the trust of the least
    /// trusted source.
    pub(super) fn view(&self, content: &str, label: &Label, sources: &[String], from: Timestamp) -> MemoryEntry {
        let id = new_memory_id(self.ids);
        let mut view = MemoryEntry::new(id, content.trim(), self.now, Provenance::labelled("dream", label));
        view.metadata = BTreeMap::from([
            (VIEW.to_owned(), self.pass.name().to_owned()),
            (SOURCES.to_owned(), sources.join(", ")),
            ("validFrom".to_owned(), rfc3339(from)),
        ]);
        view
    }
}

/// The metadata of a view: the name of its pass, and the ids of its sources.
pub(super) const VIEW: &str = "view";
pub(super) const SOURCES: &str = "sources";

/// Returns `true` if `view` was made of the memory with this id.
pub(super) fn is_made_of(view: &MemoryEntry, id: &MemoryId) -> bool {
    let sources = view.metadata.get(SOURCES);
    sources.is_some_and(|sources| sources.split(", ").any(|source| source == id.as_str()))
}

/// Returns the text of a model without white space around it; `None` if the text is empty or too
/// long.
pub(super) fn bounded(text: &str) -> Option<&str> {
    let text = text.trim();
    (!text.is_empty() && text.chars().count() <= MAX_TEXT).then_some(text)
}

/// Returns the category that a model names, if it is a path.
pub(super) fn category(name: Option<&str>) -> Option<StorePath> {
    name.and_then(|name| StorePath::new(name.trim()).ok())
}

/// Returns the first tags that a model names.
pub(super) fn tags(tags: Vec<String>) -> Vec<String> {
    let short = tags
        .into_iter()
        .filter(|tag| !tag.trim().is_empty() && tag.chars().count() <= 100);
    short.take(MAX_TAGS).collect()
}
