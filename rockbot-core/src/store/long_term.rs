//! Long-term memory: facts that outlive their conversation.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::memory_query::MemoryQuery;
use super::per_principal::PerPrincipal;
use super::{StoreError, StoreErrorKind, StorePath};
use crate::chat::Provenance;
use crate::search::Ranked;
use crate::{MemoryId, Principal, Timestamp};

/// Remembers facts.
#[async_trait]
pub trait LongTermMemory: fmt::Debug + Send + Sync + 'static {
    /// The entry `id`, archived or not.
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

    /// Keeps an entry, unless a live one [says the same](MemoryEntry::says_the_same_as): then that one is
    /// [reinforced](MemoryEntry::reinforce), and there is no second copy. Of several calls at once with the same words
    /// one adds.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be written.
    async fn remember(&self, principal: &Principal, entry: MemoryEntry) -> Result<Remembered, StoreError>;

    /// Puts `after` in the place of `before`, if `before` still stands there as it is. Returns whether it did; never
    /// when their ids differ.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be written.
    async fn replace(
        &self,
        principal: &Principal,
        before: &MemoryEntry,
        after: MemoryEntry,
    ) -> Result<bool, StoreError>;

    /// Removes an entry for good and returns it. [`LongTermMemoryExt::archive`] can be undone.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be written.
    async fn delete(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError>;

    /// Removes for good, for all principals, the entries that were archived before `before`, and returns how many. What
    /// cannot be read stays, and so does what a person changed since, as far as the memory can tell.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be written; what went before is gone.
    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError>;

    /// All entries, archived ones too, in the order of their ids.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be read.
    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<MemoryEntry>>, StoreError>;

    /// The entries that `query` asks for, the best first.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be read.
    async fn search(
        &self,
        principal: &Principal,
        query: &MemoryQuery,
    ) -> Result<Vec<Ranked<Arc<MemoryEntry>>>, StoreError> {
        Ok(query.rank(self.list(principal).await?))
    }
}

/// What follows from the operations of a [`LongTermMemory`].
#[async_trait]
pub trait LongTermMemoryExt: LongTermMemory {
    /// Changes an entry, also while others do, and returns it as it is then; `None` when there is none. `change` may be
    /// called several times, each time with an entry as it stands.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be read or written, and when others are always faster.
    async fn update(
        &self,
        principal: &Principal,
        id: &MemoryId,
        change: impl for<'e> Fn(&'e mut MemoryEntry) + Send + Sync,
    ) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        for _ in 0..MAX_TRIES {
            let Some(before) = self.get(principal, id).await? else {
                return Ok(None);
            };
            let mut after = (*before).clone();
            change(&mut after);
            if self.replace(principal, &before, after.clone()).await? {
                return Ok(Some(Arc::new(after)));
            }
        }
        let context =
            format!("the memory `{id}` cannot be changed, since other writers changed it each time; try again");
        Err(StoreError::new(StoreErrorKind::Conflict, context))
    }

    /// Hides an entry from searches, and says why. It can still be read, and comes back with
    /// [`LongTermMemoryExt::restore`]. Returns it as it is then; `None` when there is none.
    ///
    /// # Errors
    ///
    /// Fails as [`LongTermMemoryExt::update`] does.
    async fn archive(
        &self,
        principal: &Principal,
        id: &MemoryId,
        reason: &str,
        now: Timestamp,
    ) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        let archive = |entry: &mut MemoryEntry| {
            entry.archived_at = Some(now);
            entry.archive_reason = Some(reason.to_owned());
        };
        self.update(principal, id, archive).await
    }

    /// Undoes [`LongTermMemoryExt::archive`], and that another entry took the place of this one.
    ///
    /// # Errors
    ///
    /// Fails as [`LongTermMemoryExt::update`] does.
    async fn restore(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        let restore = |entry: &mut MemoryEntry| {
            (entry.archived_at, entry.archive_reason, entry.superseded_by) = (None, None, None);
        };
        self.update(principal, id, restore).await
    }
}

impl<M: LongTermMemory + ?Sized> LongTermMemoryExt for M {}

/// How often a change is tried while others change the same entry.
const MAX_TRIES: usize = 100;

/// What became of an entry that was to be remembered.
#[derive(Debug, Clone, PartialEq)]
pub enum Remembered {
    /// It was new, and stands there now.
    Added(Arc<MemoryEntry>),
    /// This one said the same already.
    Reinforced(Arc<MemoryEntry>),
}

impl Remembered {
    /// The entry that stands there now.
    pub fn entry(&self) -> &Arc<MemoryEntry> {
        match self {
            Self::Added(entry) | Self::Reinforced(entry) => entry,
        }
    }
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
    /// When it was learned first.
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
    /// When it was learned last; `None` means [`created_at`](Self::created_at). Changing an entry is not learning it
    /// again.
    #[serde(default, with = "crate::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<Timestamp>,
    /// How often it was learned: once unless somebody says otherwise.
    #[serde(default = "once")]
    pub reinforcement_count: u32,
    /// Since when it is hidden from searches.
    #[serde(default, with = "crate::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<Timestamp>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive_reason: Option<String>,
    /// Which entry says better what this one said: it hides this one from searches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<MemoryId>,
    /// Where it came from: what was learned from untrusted text is not trusted.
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
    /// A fact of medium importance that was learned `now`, for the first time.
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

    /// When it was archived, if its times can be believed: of one that was archived before it was learned nobody knows, since a
    /// clock was wrong.
    pub fn credibly_archived_at(&self) -> Option<Timestamp> {
        self.archived_at.filter(|at| *at >= self.created_at)
    }

    /// Whether it was archived before `before`, as far as its times can be believed.
    pub fn was_archived_before(&self, before: Timestamp) -> bool {
        self.credibly_archived_at().is_some_and(|at| at < before)
    }

    /// When it was learned last.
    pub fn last_seen(&self) -> Timestamp {
        self.last_seen_at.unwrap_or(self.created_at)
    }

    /// Whether searches find it: it is not archived, and none took its place.
    pub fn is_live(&self) -> bool {
        self.archived_at.is_none() && self.superseded_by.is_none()
    }

    /// What searches look at: the fact, its tags and its category.
    pub fn searched_text(&self) -> String {
        let category = self.category.as_ref().map_or("", StorePath::as_str);
        [&self.content, &*self.tags.join("\n"), category].join("\n")
    }

    /// Whether `other` has the same words in the same order, whatever their case, the blanks between them and the
    /// punctuation around them. A minus sign, a currency or a question mark is a difference.
    ///
    /// It is strict, since `was born in 1980` and `was born in 1981` are nearly the same words and not the same fact.
    pub fn says_the_same_as(&self, other: &Self) -> bool {
        let mut words = words(&self.content).peekable();
        match words.peek() {
            Some(_) => words.eq(self::words(&other.content)),
            None => self.content == other.content,
        }
    }

    /// Whether the words of `text` stand in this entry, one after the other, as [`says_the_same_as`](Self::says_the_same_as)
    /// compares them. A text without words stands nowhere.
    pub fn has_words_of(&self, text: &str) -> bool {
        let in_a_row = |text: &str| format!(" {} ", words(text).collect::<Vec<_>>().join(" "));
        let wanted = in_a_row(text);
        !wanted.trim().is_empty() && in_a_row(&self.content).contains(&wanted)
    }

    /// What the entry says, without what makes no difference: the same text for entries that
    /// [say the same](Self::says_the_same_as), and for no others. For stores that find them by an index.
    pub fn wording(&self) -> String {
        let words: Vec<_> = words(&self.content).collect();
        match words.is_empty() {
            true => self.content.clone(),
            false => words.join(" "),
        }
    }

    /// Takes in that the same was learned once more, as `by`. The entry keeps its words and category; the earlier
    /// beginning, the later moment, the higher importance and the higher trust hold; counts add up; tags and metadata
    /// are completed. Nothing changes when `by` is trusted less: otherwise any web page could make a fact look well
    /// established.
    pub fn reinforce(&mut self, by: &Self) {
        if by.provenance.trust < self.provenance.trust {
            return;
        }
        if by.provenance.trust > self.provenance.trust {
            self.provenance = by.provenance.clone();
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

/// Punctuation that stands around words and does not change what is said.
const AROUND_WORDS: [char; 10] = ['.', ',', ';', ':', '!', '"', '\'', '(', ')', '…'];

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split_whitespace().map(|word| word.trim_matches(AROUND_WORDS));
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// What is to be kept when `entry` is to be remembered among `known`: for authors of stores.
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

    async fn remember(&self, principal: &Principal, entry: MemoryEntry) -> Result<Remembered, StoreError> {
        Ok(self.entries.write(principal, |entries| {
            let remembered = remembered(entries.values(), entry);
            let entry = remembered.entry();
            entries.insert(entry.id.clone(), entry.clone());
            remembered
        }))
    }

    async fn replace(
        &self,
        principal: &Principal,
        before: &MemoryEntry,
        after: MemoryEntry,
    ) -> Result<bool, StoreError> {
        Ok(self
            .entries
            .write(principal, |entries| match entries.get_mut(&after.id) {
                Some(entry) if **entry == *before => {
                    *entry = Arc::new(after);
                    true
                }
                _ => false,
            }))
    }

    async fn delete(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        Ok(self.entries.write(principal, |entries| entries.remove(id)))
    }

    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError> {
        let purged = self.entries.write_all(|entries| {
            let len = entries.len();
            entries.retain(|_, entry| !entry.was_archived_before(before));
            (len - entries.len()) as u64
        });
        Ok(purged.into_iter().sum())
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
            (Provenance::USER, 2)
        );
    }
}
