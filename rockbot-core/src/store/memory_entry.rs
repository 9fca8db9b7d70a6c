//! Entries of long-term memory, and the rules that decide whether two of them are the same fact.
//!
//! The same fact is the same words, not similar words: `born in 1980` and `born in 1981` are
//! nearly the same words. A less trusted text reinforces nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::StorePath;
use crate::chat::Provenance;
use crate::{MemoryId, Timestamp};

/// The result of remembering an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Remembered {
    /// The entry was new and is stored now.
    Added(Arc<MemoryEntry>),
    /// This stored entry said the same and was reinforced.
    Reinforced(Arc<MemoryEntry>),
}

impl Remembered {
    /// Returns the entry that is stored now.
    pub fn entry(&self) -> &Arc<MemoryEntry> {
        match self {
            Self::Added(entry) | Self::Reinforced(entry) => entry,
        }
    }
}

/// A fact in long-term memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MemoryEntry {
    /// Unique id of the entry.
    pub id: MemoryId,
    /// Text of the fact.
    pub content: String,
    /// Category, such as `projects/rust`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<StorePath>,
    /// Tags, which searches match too.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Time when the fact was first learned.
    #[serde(with = "crate::rfc3339")]
    pub created_at: Timestamp,
    /// Time of the last change.
    #[serde(default, with = "crate::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// Further properties, for programs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Importance, from 0 to 1. Default 0.5.
    #[serde(default = "medium")]
    pub importance_score: f64,
    /// Time when the fact was last learned; `None` means [`created_at`](Self::created_at). Editing
    /// an entry does not count as learning it again.
    #[serde(default, with = "crate::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<Timestamp>,
    /// Number of times that the fact was learned. Default 1.
    #[serde(default = "once")]
    pub reinforcement_count: u32,
    /// Time of archiving; searches skip an archived entry.
    #[serde(default, with = "crate::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<Timestamp>,
    /// Reason of archiving.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive_reason: Option<String>,
    /// Entry that supersedes this entry. Searches then skip this entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<MemoryId>,
    /// Provenance: a fact learned from untrusted text is untrusted.
    #[serde(default = "super::unknown_provenance")]
    pub provenance: Provenance,
}

fn medium() -> f64 {
    0.5
}

fn once() -> u32 {
    1
}

impl MemoryEntry {
    /// Creates a fact of medium importance that was first learned at `now`.
    pub fn new(id: impl Into<MemoryId>, content: impl Into<String>, now: Timestamp, provenance: Provenance) -> Self {
        Self {
            id: id.into(),
            content: content.into(),
            category: None,
            tags: Vec::new(),
            created_at: now,
            updated_at: None,
            metadata: BTreeMap::new(),
            importance_score: medium(),
            last_seen_at: None,
            reinforcement_count: once(),
            archived_at: None,
            archive_reason: None,
            superseded_by: None,
            provenance,
        }
    }

    /// Sets the category, such as `projects/rust`.
    #[must_use]
    pub fn with_category(mut self, category: impl Into<Option<StorePath>>) -> Self {
        self.category = category.into();
        self
    }

    /// Sets the tags, which searches match too.
    #[must_use]
    pub fn with_tags(mut self, tags: Vec<String>) -> Self {
        self.tags = tags;
        self
    }

    /// Sets the time of the last change.
    #[must_use]
    pub fn with_updated_at(mut self, updated_at: impl Into<Option<Timestamp>>) -> Self {
        self.updated_at = updated_at.into();
        self
    }

    /// Sets the further properties, for programs.
    #[must_use]
    pub fn with_metadata(mut self, metadata: BTreeMap<String, String>) -> Self {
        self.metadata = metadata;
        self
    }

    /// Sets the importance, from 0 to 1. Default 0.5.
    #[must_use]
    pub fn with_importance_score(mut self, importance_score: f64) -> Self {
        self.importance_score = importance_score;
        self
    }

    /// Sets the time when the fact was last learned; `None` means [`created_at`](Self::created_at).
    #[must_use]
    pub fn with_last_seen_at(mut self, last_seen_at: impl Into<Option<Timestamp>>) -> Self {
        self.last_seen_at = last_seen_at.into();
        self
    }

    /// Sets the number of times that the fact was learned. Default 1.
    #[must_use]
    pub fn with_reinforcement_count(mut self, reinforcement_count: u32) -> Self {
        self.reinforcement_count = reinforcement_count;
        self
    }

    /// Sets the time of archiving; searches skip an archived entry.
    #[must_use]
    pub fn with_archived_at(mut self, archived_at: impl Into<Option<Timestamp>>) -> Self {
        self.archived_at = archived_at.into();
        self
    }

    /// Sets the text of the fact.
    #[must_use]
    pub fn with_content(mut self, content: impl Into<String>) -> Self {
        self.content = content.into();
        self
    }

    /// Sets the provenance: a fact learned from untrusted text is untrusted.
    #[must_use]
    pub fn with_provenance(mut self, provenance: Provenance) -> Self {
        self.provenance = provenance;
        self
    }

    /// Returns the time of archiving if it is credible. `None` for an entry that was archived before
    /// it was learned: clock skew, so its true time is unknown.
    pub fn credibly_archived_at(&self) -> Option<Timestamp> {
        self.archived_at.filter(|at| *at >= self.created_at)
    }

    /// Returns `true` if the entry was archived before `before`, as far as its times are credible.
    pub fn was_archived_before(&self, before: Timestamp) -> bool {
        self.credibly_archived_at().is_some_and(|at| at < before)
    }

    /// Returns the time when the fact was last learned.
    pub fn last_seen(&self) -> Timestamp {
        self.last_seen_at.unwrap_or(self.created_at)
    }

    /// Returns `true` if searches return the entry: it is neither archived nor superseded.
    pub fn is_live(&self) -> bool {
        self.archived_at.is_none() && self.superseded_by.is_none()
    }

    /// Returns the text that searches match: the fact, its tags and its category.
    pub fn searched_text(&self) -> String {
        let category = self.category.as_ref().map_or("", StorePath::as_str);
        [&self.content, &*self.tags.join("\n"), category].join("\n")
    }

    /// Returns `true` if `other` has the same words in the same order. Case, white space and
    /// surrounding punctuation are ignored; a minus sign, a currency or a question mark is a
    /// difference.
    ///
    /// The comparison is strict, since `was born in 1980` and `was born in 1981` are nearly the same
    /// words and not the same fact.
    pub fn says_the_same_as(&self, other: &Self) -> bool {
        let mut words = words(&self.content).peekable();
        match words.peek() {
            Some(_) => words.eq(self::words(&other.content)),
            None => self.content == other.content,
        }
    }

    /// Returns `true` if the entry contains the words of `text`, consecutively, compared as by
    /// [`says_the_same_as`](Self::says_the_same_as). Always `false` for a text without words.
    pub fn has_words_of(&self, text: &str) -> bool {
        let in_a_row = |text: &str| format!(" {} ", words(text).collect::<Vec<_>>().join(" "));
        let wanted = in_a_row(text);
        !wanted.trim().is_empty() && in_a_row(&self.content).contains(&wanted)
    }

    /// Returns the normalized text: equal for entries that [say the same](Self::says_the_same_as),
    /// and for no others. For stores that find duplicates by an index.
    pub fn wording(&self) -> String {
        let words: Vec<_> = words(&self.content).collect();
        if words.is_empty() {
            self.content.clone()
        } else {
            words.join(" ")
        }
    }

    /// Merges `by`, another occurrence of the same fact. The entry keeps its words and category;
    /// the earlier creation, the later time and the higher importance win; counts add up; tags and
    /// metadata are merged. An occurrence of lower trust changes nothing: otherwise any web page
    /// could make a fact look well established. From an occurrence of higher trust the entry takes
    /// everything but its id: nothing that an untrusted source wrote becomes trusted.
    pub fn reinforce(&mut self, by: &Self) {
        if by.provenance.trust < self.provenance.trust {
            return;
        }
        if by.provenance.trust > self.provenance.trust {
            let id = std::mem::replace(&mut self.id, by.id.clone());
            *self = Self { id, ..by.clone() };
            return;
        }
        self.last_seen_at = Some(self.last_seen().max(by.last_seen()));
        self.created_at = self.created_at.min(by.created_at);
        self.reinforcement_count = self.reinforcement_count.saturating_add(by.reinforcement_count);
        self.importance_score = self.importance_score.max(by.importance_score);
        self.category = self.category.take().or_else(|| by.category.clone());
        let new_tags: Vec<_> = by.tags.iter().filter(|tag| !self.tags.contains(tag)).cloned().collect();
        self.tags.extend(new_tags);
        for (name, value) in &by.metadata {
            self.metadata.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
}

/// Punctuation around words, ignored in comparisons.
const AROUND_WORDS: [char; 10] = ['.', ',', ';', ':', '!', '"', '\'', '(', ')', '…'];

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split_whitespace().map(|word| word.trim_matches(AROUND_WORDS));
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Decides how to store `entry` among the `known` entries: for implementers of
/// [`LongTermMemory::remember`](super::LongTermMemory::remember).
pub fn remembered<'a>(known: impl IntoIterator<Item = &'a Arc<MemoryEntry>>, entry: MemoryEntry) -> Remembered {
    let mut live = known.into_iter().filter(|known| known.is_live());
    match live.find(|known| known.says_the_same_as(&entry)) {
        None => Remembered::Added(Arc::new(entry)),
        Some(twin) => {
            let mut twin = (**twin).clone();
            twin.reinforce(&entry);
            Remembered::Reinforced(Arc::new(twin))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_another_program_opens_as_untrusted() {
        let json = r#"{"id":"0123456789ab","content":"likes tea","category":"user/taste","tags":["tea"],"createdAt":"2026-01-01T00:00:00+00:00"}"#;
        let entry: MemoryEntry = serde_json::from_str(json).unwrap();
        assert_eq!(entry.importance_score, 0.5);
        assert_eq!(entry.provenance, super::super::unknown_provenance());
        let back: MemoryEntry = serde_json::from_str(&serde_json::to_string(&entry).unwrap()).unwrap();
        assert_eq!(back, entry);
    }

    #[test]
    fn the_same_said_again() {
        let entry = |content: &str| MemoryEntry::new("m", content, Timestamp::default(), Provenance::USER);
        let says = |a: &str, b: &str| entry(a).says_the_same_as(&entry(b));
        let wording = |content: &str| entry(content).wording();
        for (a, b) in [
            ("Likes tea.", "likes  tea"),
            ("\"Ærø\", he said", "ærø he said!"),
            ("…", "…"),
            ("", ""),
        ] {
            assert!(says(a, b) && says(b, a), "{a} | {b}");
            assert_eq!(wording(a), wording(b));
        }
        for (a, b) in [
            ("likes tea", "likes tea?"),
            ("likes tea", "likes green tea"),
            ("tea likes", "likes tea"),
            ("it is 5 degrees", "it is -5 degrees"),
            ("costs 5", "costs 5€"),
            ("knows C", "knows C#"),
            ("…", "..."),
            ("", "."),
        ] {
            assert!(!says(a, b) && !says(b, a), "{a} | {b}");
            assert_ne!(wording(a), wording(b));
        }
    }

    #[test]
    fn what_is_trusted_less_reinforces_nothing() {
        let entry = |provenance| MemoryEntry::new("m", "likes tea", Timestamp::default(), provenance);
        let mut trusted = entry(Provenance::USER);
        trusted.reinforce(&entry(Provenance::TOOL));
        assert_eq!(trusted, entry(Provenance::USER));
        let mut untrusted = entry(Provenance::TOOL);
        untrusted.reinforce(&entry(Provenance::USER));
        assert_eq!(
            (untrusted.provenance, untrusted.reinforcement_count),
            (Provenance::USER, 1)
        );
    }
}
