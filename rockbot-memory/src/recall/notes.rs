//! Recall of working memory: the keys, not the texts.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::try_join;
use rockbot_core::recall::{ContextItem, ContextQuery, ContextSource};
use rockbot_core::search::Bm25Ranker;
use rockbot_core::store::{StorePath, WorkingEntry, WorkingMemory, is_result_chunk};
use rockbot_core::support::one_line;
use rockbot_core::tool::ToolGroup;
use rockbot_core::{BoxError, Clock, Timestamp};

use crate::tools::long_term::mark;
use crate::tools::shown_origin;

const HEADING: &str = "Working memory (read an entry with get_from_working_memory)";

/// Namespace through which conversations hand over work.
const SHARED: &str = "shared";

/// A context source of the newest entries of the conversation's working memory and of the shared
/// part.
///
/// An entry is shown for a message that shares a word with it. All entries are shown for a
/// message that refers to something before it ("what else does it say?") or that is not in
/// English. No entry is shown for any other message.
#[derive(Debug)]
pub struct NoteRecall {
    memory: Arc<dyn WorkingMemory>,
    clock: Arc<dyn Clock>,
    max_notes: usize,
}

impl NoteRecall {
    /// Creates a source over `memory`.
    pub fn new(memory: Arc<dyn WorkingMemory>, clock: Arc<dyn Clock>) -> Self {
        Self {
            memory,
            clock,
            max_notes: 20,
        }
    }

    /// Sets the maximum number of entries. Default 20.
    #[must_use]
    pub fn with_max_notes(mut self, max_notes: usize) -> Self {
        self.max_notes = max_notes;
        self
    }
}

/// Maximum number of bytes of an entry's text that a message is compared with. The outline of a
/// large result stands in it.
const COMPARED: usize = 2_000;

/// Maximum number of entries that a message is compared with, the newest.
const CANDIDATES: usize = 200;

/// Returns the entries that fit the message of `query`, in their order.
fn fitting(mut entries: Vec<Arc<WorkingEntry>>, query: &ContextQuery) -> Vec<Arc<WorkingEntry>> {
    if entries.is_empty() {
        return entries;
    }
    entries.truncate(CANDIDATES);
    let says_something = query.topics().next() == Some(query.text.trim());
    if refers_back(&query.text) || (says_something && !is_english(&query.text)) {
        return entries;
    }
    if !says_something {
        return Vec::new();
    }
    let ranked = Bm25Ranker::default().rank(
        entries.iter().enumerate(),
        |(_, entry)| compared(entry).into(),
        &query.text,
    );
    let mut places: Vec<_> = ranked.into_iter().map(|(place, _)| place).collect();
    places.sort_unstable();
    places.into_iter().map(|place| entries[place].clone()).collect()
}

/// Returns the text of an entry that a message is compared with.
fn compared(entry: &WorkingEntry) -> String {
    // The folder of the conversation says nothing about the entry.
    let key = entry.key.as_str();
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    let category = entry.category.as_ref().map(StorePath::as_str).unwrap_or_default();
    let value = &entry.value[..entry.value.floor_char_boundary(COMPARED)];
    [name, category, &entry.tags.join(" "), value].join("\n")
}

/// Reports whether a message in English refers to something that was said or done before.
fn refers_back(text: &str) -> bool {
    const WORDS: [&str; 32] = [
        "above",
        "again",
        "all",
        "also",
        "before",
        "continue",
        "document",
        "earlier",
        "else",
        "file",
        "first",
        "further",
        "it",
        "its",
        "last",
        "more",
        "next",
        "note",
        "notes",
        "other",
        "output",
        "page",
        "proceed",
        "remaining",
        "rest",
        "result",
        "results",
        "same",
        "that",
        "these",
        "they",
        "this",
    ];
    words(text).any(|word| WORDS.contains(&word.as_str()))
}

/// Returns `true` if a message has a very common English word: entries are compared with it by
/// the words of that language.
fn is_english(text: &str) -> bool {
    const WORDS: [&str; 18] = [
        "a", "an", "and", "are", "can", "do", "for", "how", "is", "me", "my", "of", "please", "the", "to", "what",
        "who", "you",
    ];
    words(text).any(|word| WORDS.contains(&word.as_str()))
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|character: char| !character.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

fn item(entry: &WorkingEntry, now: Timestamp) -> ContextItem {
    let minutes = entry.expires_at.since(now).as_secs().div_ceil(60);
    let category = entry
        .category
        .as_ref()
        .map(|category| format!(", {}", one_line(category.as_str())))
        .unwrap_or_default();
    let tags = if entry.tags.is_empty() {
        String::new()
    } else {
        format!(", tags: {}", one_line(&entry.tags.join(", ")))
    };
    let from = shown_origin(&entry.provenance);
    let mark = mark(&from).map(|mark| format!(", {mark}")).unwrap_or_default();
    let key = one_line(entry.key.as_str());
    // The keys, categories and tags are text of its author; its text is not shown.
    let text = format!("- {key} (for {minutes} more minutes{category}{tags}{mark})");
    ContextItem::new(HEADING, text, "noted in this conversation or shared", from).activating(ToolGroup::STORED_TEXTS)
}

#[async_trait]
impl ContextSource for NoteRecall {
    fn name(&self) -> &str {
        "working memory"
    }

    async fn gather(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        let own = query.namespace();
        let shared = StorePath::new(SHARED)?;
        let list = |path| self.memory.list(&query.principal, Some(path));
        let (own, shared) = try_join(list(own.path()), list(&shared)).await?;
        let mut entries: Vec<_> = own
            .into_iter()
            .chain(shared)
            .filter(|entry| !is_result_chunk(entry))
            .collect();
        entries.sort_by(|one, other| {
            other
                .stored_at
                .cmp(&one.stored_at)
                .then_with(|| one.key.cmp(&other.key))
        });
        let now = self.clock.now();
        Ok(fitting(entries, query)
            .iter()
            .take(self.max_notes)
            .map(|entry| item(entry, now))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rockbot_core::Principal;
    use rockbot_core::content::Provenance;
    use rockbot_core::store::{InMemoryWorkingMemory, WorkingNote};
    use rockbot_core::testing::ManualClock;

    use super::*;

    #[tokio::test]
    async fn keys_of_the_conversation_and_shared_ones_are_listed() {
        let clock = ManualClock::default();
        let memory = InMemoryWorkingMemory::new().with_clock(Arc::new(clock.clone()));
        let note = |key: &str, category: &str| {
            let from = if key.starts_with("shared") {
                Provenance::TOOL
            } else {
                Provenance::USER
            };
            WorkingNote::new(StorePath::new(key).unwrap(), "secret", from)
                .with_ttl(Duration::from_secs(90))
                .with_category(StorePath::new(category).unwrap())
                .with_tags(vec!["x".to_owned()])
        };
        let notes = vec![
            note("session/s/draft", "letters"),
            note("session/s/tool-dump-1-chunk0", "tool-result"),
            note("session/s/tool-dump-1-index", "tool-result"),
            note("session/other/draft", "letters"),
            note("shared/plan", "plans"),
        ];
        memory.put(&Principal::default(), notes).await.unwrap();
        let recall = NoteRecall::new(Arc::new(memory), Arc::new(clock));
        let shown = async |text: &str| {
            let query = ContextQuery::new(Principal::default(), "s".into(), "t".into(), text);
            let items = recall.gather(&query).await.unwrap();
            items.into_iter().map(|item| item.text).collect::<Vec<_>>()
        };
        let [draft, index, plan] = [
            "- session/s/draft (for 2 more minutes, letters, tags: x)",
            "- session/s/tool-dump-1-index (for 2 more minutes, tool-result, tags: x)",
            "- shared/plan (for 2 more minutes, plans, tags: x, from tool, not confirmed by the user)",
        ];
        for refers in ["What else does it say?", "more", "Und was steht noch drin?"] {
            assert_eq!(shown(refers).await, [draft, index, plan], "{refers}");
        }
        assert_eq!(shown("Is the letter ready to be sent to Ada?").await, [draft]);
        assert_eq!(shown("Who was in the dump of the tool?").await, [index]);
        assert_eq!(shown("What are the plans of Bob?").await, [plan]);
        for other in [
            "hi",
            "What is 17 * 23?",
            "17 * 23",
            "What is the capital of France?",
            "thanks",
        ] {
            assert_eq!(shown(other).await, Vec::<String>::new(), "{other}");
        }
    }
}
