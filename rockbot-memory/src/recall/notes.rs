//! Recall of working memory: the keys, not the texts.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::try_join;
use rockbot_core::recall::{ContextItem, ContextQuery, ContextSource};
use rockbot_core::store::{Namespace, StorePath, WorkingEntry, WorkingMemory, is_result_chunk};
use rockbot_core::support::one_line;
use rockbot_core::tool::ToolGroup;
use rockbot_core::{BoxError, Clock, Timestamp};

use crate::tools::long_term::mark;
use crate::tools::shown_origin;

const HEADING: &str = "Working memory (read an entry with get_from_working_memory)";

/// Namespace through which conversations hand over work.
const SHARED: &str = "shared";

/// A context source of the newest entries of the conversation's working memory and of the shared part.
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

fn item(entry: &WorkingEntry, now: Timestamp) -> ContextItem {
    let minutes = entry.expires_at.since(now).as_secs().div_ceil(60);
    let category = entry
        .category
        .as_ref()
        .map(|category| format!(", {}", one_line(category.as_str())))
        .unwrap_or_default();
    let tags = match entry.tags.is_empty() {
        true => String::new(),
        false => format!(", tags: {}", one_line(&entry.tags.join(", "))),
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
        let own = Namespace::of_session(&query.session);
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
        Ok(entries
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
        let query = ContextQuery::new(Principal::default(), "s".into(), "t".into(), "hi");
        let recall = NoteRecall::new(Arc::new(memory), Arc::new(clock));
        let items = recall.gather(&query).await.unwrap();
        assert_eq!(
            items.iter().map(|item| item.text.as_str()).collect::<Vec<_>>(),
            [
                "- session/s/draft (for 2 more minutes, letters, tags: x)",
                "- session/s/tool-dump-1-index (for 2 more minutes, tool-result, tags: x)",
                "- shared/plan (for 2 more minutes, plans, tags: x, from tool, not confirmed by the user)",
            ]
        );
    }
}
