//! Recall of long-term memories that fit the message.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use rockbot_core::recall::{ContextItem, ContextQuery, ContextSource};
use rockbot_core::store::{LongTermMemory, MemoryEntry, MemoryQuery};
use rockbot_core::{BoxError, Clock, Timestamp};

use super::decay::Decay;
use super::shortened;
use super::topics::{merged, reason};
use crate::stale::{self, is_stale};
use crate::tools::long_term::{fact, filed, mark};
use crate::tools::{ago, shown_origin};

const HEADING: &str = "Memories";

/// Maximum length of one memory, in bytes.
const SHOWN: usize = 1_500;

/// A context source of the memories that fit a message best; on request, of the newest ones when
/// a conversation begins and none fits.
#[derive(Debug)]
pub struct MemoryRecall {
    memory: Arc<dyn LongTermMemory>,
    clock: Arc<dyn Clock>,
    max_memories: usize,
    max_new: usize,
    decay: Decay,
}

impl MemoryRecall {
    /// Creates a source over `memory`.
    pub fn new(memory: Arc<dyn LongTermMemory>, clock: Arc<dyn Clock>) -> Self {
        Self {
            memory,
            clock,
            max_memories: 8,
            max_new: 0,
            decay: Decay::default(),
        }
    }

    /// Sets the maximum number of memories. Default 8.
    #[must_use]
    pub fn with_max_memories(mut self, max_memories: usize) -> Self {
        self.max_memories = max_memories;
        self
    }

    /// Sets the maximum number of the newest memories when a conversation begins and none fits.
    /// Default 0: most first messages need none of them.
    #[must_use]
    pub fn with_max_new(mut self, max_new: usize) -> Self {
        self.max_new = max_new;
        self
    }

    /// Sets the decay of importance over time.
    #[must_use]
    pub fn with_decay(mut self, decay: Decay) -> Self {
        self.decay = decay;
        self
    }

    async fn fitting(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        let search = async |topic| {
            let asked = MemoryQuery::new(topic).with_limit(self.max_memories);
            self.memory
                .search(&query.principal, &asked)
                .await
                .map(|found| (topic, found))
        };
        let found = try_join_all(query.topics().map(search)).await?;
        let found = merged(found, |entry: &Arc<MemoryEntry>| entry.id.clone()).into_iter();
        let now = self.clock.now();
        let mut found: Vec<_> = found
            .map(|found| (found.score * self.weight(&found.item, now), found))
            .collect();
        found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let shown = found.into_iter().take(self.max_memories);
        Ok(shown
            .map(|(_, found)| self.item(&found.item, reason(found.topic, found.score)))
            .collect())
    }

    /// Weighs a hit: among equally good matches the more important memory wins, but a much better
    /// match always does.
    fn weight(&self, entry: &MemoryEntry, now: Timestamp) -> f64 {
        0.75 + 0.5 * self.decay.importance(entry, now)
    }

    async fn newest(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        let newest = MemoryQuery::default().with_limit(self.max_new);
        let found = self.memory.search(&query.principal, &newest).await?;
        let item = |entry: &Arc<MemoryEntry>| self.item(entry, "learned last".to_owned());
        Ok(found.iter().map(|found| item(&found.item)).collect())
    }

    fn item(&self, entry: &MemoryEntry, reason: String) -> ContextItem {
        let from = shown_origin(&entry.provenance);
        let category = filed(entry);
        let age = ago(entry.last_seen(), self.clock.now());
        let stale = is_stale(entry).then(|| stale::WORDS.to_owned());
        let marks: String = mark(&from)
            .into_iter()
            .chain(stale)
            .map(|mark| format!(", {mark}"))
            .collect();
        let fact = fact(entry);
        let parts = [
            "- [",
            entry.id.as_str(),
            "] (",
            &category,
            ", ",
            &age,
            &marks,
            "): ",
            &shortened(&fact, SHOWN),
        ];
        ContextItem::new(HEADING, parts.concat(), reason, from)
    }
}

#[async_trait]
impl ContextSource for MemoryRecall {
    fn name(&self) -> &str {
        "memory"
    }

    async fn gather(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        let fitting = self.fitting(query).await?;
        if fitting.is_empty() && query.is_first() && self.max_new > 0 {
            self.newest(query).await
        } else {
            Ok(fitting)
        }
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::Principal;
    use rockbot_core::chat::Provenance;
    use rockbot_core::store::{InMemoryLongTermMemory, StorePath};
    use rockbot_core::testing::ManualClock;

    use super::*;

    const DAY: u64 = 24 * 60 * 60 * 1_000;

    async fn recall() -> MemoryRecall {
        let memory = InMemoryLongTermMemory::new();
        for (id, day, content) in [
            ("garden", 0, "The garden gate squeaks."),
            ("cat", 8, "The cat is called Miso."),
            ("tea", 9, "Prefers green tea in the morning."),
        ] {
            let mut entry = MemoryEntry::new(id, content, Timestamp::from_millis(day * DAY), Provenance::HOST);
            entry.category = (id == "cat").then(|| StorePath::new("family/pets").unwrap());
            memory.save(&Principal::default(), entry).await.unwrap();
        }
        let clock = ManualClock::new(Timestamp::from_millis(9 * DAY));
        MemoryRecall::new(Arc::new(memory), Arc::new(clock)).with_max_new(3)
    }

    /// Checks the recalled items, with their reasons.
    async fn check(text: &str, earlier: &[&str], expected: &[(&str, &str)]) {
        let query = ContextQuery::new(Principal::default(), "s".into(), "t".into(), text);
        let query = query.with_earlier(earlier.iter().map(|&text| text.to_owned()).collect());
        let items = recall().await.gather(&query).await.unwrap();
        let shown: Vec<_> = items
            .iter()
            .map(|item| (item.text.as_str(), item.reason.as_str()))
            .collect();
        assert_eq!(shown, expected);
        assert!(
            items
                .iter()
                .all(|item| item.provenance == Provenance::HOST && !item.is_instruction)
        );
    }

    #[tokio::test]
    async fn what_fits_is_shown_with_its_age_and_the_reason() {
        let cat = "- [cat] (family/pets, 1 day ago): The cat is called Miso.";
        let reason = "fits \"What is the name of our cat again, pleas […]\" (1.00)";
        check(
            "What is the name of our cat again, please?",
            &["Hello there"],
            &[(cat, reason)],
        )
        .await;
    }

    #[tokio::test]
    async fn a_short_first_question_finds_its_memory() {
        let cat = "- [cat] (family/pets, 1 day ago): The cat is called Miso.";
        check(
            "What is my cat called?",
            &[],
            &[(cat, "fits \"What is my cat called?\" (1.00)")],
        )
        .await;
    }

    #[tokio::test]
    async fn what_was_spoken_of_before_stays_in_sight() {
        let gate = "- [garden] (general, 9 days ago): The garden gate squeaks.";
        let earlier = "Could you oil that squeaking garden gate, please?";
        let reason = "fits \"Could you oil that squeaking garden gate […]\" (1.00)";
        check("Yes, now.", &[earlier], &[(gate, reason)]).await;
    }

    #[tokio::test]
    async fn of_those_that_fit_alike_the_ones_that_matter_come_first() {
        let memory = InMemoryLongTermMemory::new();
        for (id, importance) in [("a", 0.1), ("b", 0.9)] {
            let mut entry = MemoryEntry::new(id, "Miso sleeps.", Timestamp::default(), Provenance::MODEL);
            entry.importance_score = importance;
            memory.save(&Principal::default(), entry).await.unwrap();
        }
        let recall = MemoryRecall::new(Arc::new(memory), Arc::new(ManualClock::new(Timestamp::default())));
        let query = ContextQuery::new(
            Principal::default(),
            "s".into(),
            "t".into(),
            "Where is it that Miso sleeps, again?",
        );
        let items = recall.gather(&query).await.unwrap();
        let ids: Vec<_> = items.iter().map(|item| &item.text[..5]).collect();
        assert_eq!(ids, ["- [b]", "- [a]"]);
    }

    #[tokio::test]
    async fn an_old_memory_that_matters_comes_before_a_new_one_that_does_not() {
        let memory = InMemoryLongTermMemory::new();
        for (id, importance, day) in [("a", 0.6, 1_000), ("b", 0.8, 0)] {
            let created = Timestamp::from_millis(day * DAY);
            let mut entry = MemoryEntry::new(id, "Miso sleeps.", created, Provenance::MODEL);
            entry.importance_score = importance;
            memory.save(&Principal::default(), entry).await.unwrap();
        }
        let now = ManualClock::new(Timestamp::from_millis(1_000 * DAY));
        let recall = MemoryRecall::new(Arc::new(memory), Arc::new(now));
        let query = ContextQuery::new(Principal::default(), "s".into(), "t".into(), "Where does Miso sleep?");
        let items = recall.gather(&query).await.unwrap();
        let ids: Vec<_> = items.iter().map(|item| &item.text[..5]).collect();
        assert_eq!(ids, ["- [b]", "- [a]"]);
    }

    #[tokio::test]
    async fn a_conversation_begins_with_what_was_learned_last() {
        let tea = "- [tea] (general, today): Prefers green tea in the morning.";
        let cat = "- [cat] (family/pets, 1 day ago): The cat is called Miso.";
        let gate = "- [garden] (general, 9 days ago): The garden gate squeaks.";
        let new = "learned last";
        check("Hi", &[], &[(tea, new), (cat, new), (gate, new)]).await;
        check("Hi", &["Good evening"], &[]).await;
    }
}
