//! Feedback: signs of how well the agent did, gathered for the agent's own improvement.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::StoreError;
use super::timeline::{Dated, Timeline};
use crate::{Principal, SessionId, Timestamp};

/// Remembers feedback.
#[async_trait]
pub trait FeedbackStore: fmt::Debug + Send + Sync + 'static {
    /// Adds an entry.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be written.
    async fn append(&self, principal: &Principal, entry: FeedbackEntry) -> Result<(), StoreError>;

    /// The newest `limit` entries of all sessions that are not older than `since`, oldest first.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be read.
    async fn query_recent(
        &self,
        principal: &Principal,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<FeedbackEntry>, StoreError>;

    /// Removes, for all principals, what is older than `before` or than the newest `most` entries of its principal, and
    /// returns how many went. What cannot be read stays, and so does what a person wrote, as far as the store can tell.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be written; what went before is gone.
    async fn purge(&self, before: Timestamp, most: usize) -> Result<u64, StoreError>;
}

/// One sign of how well the agent did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackEntry {
    /// The entry.
    pub id: String,
    /// In which conversation.
    pub session_id: SessionId,
    /// What kind of sign.
    pub signal_type: FeedbackSignal,
    /// What it says, in a sentence.
    pub summary: String,
    /// More, where there is more: for a summary of a session, its JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// When.
    #[serde(with = "crate::rfc3339")]
    pub timestamp: Timestamp,
}

/// A kind of feedback. In JSON it is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
#[non_exhaustive]
pub enum FeedbackSignal {
    /// The person corrected the agent.
    Correction,
    /// A tool failed.
    ToolFailure,
    /// A session was looked at after its end.
    SessionSummary,
    /// The person liked an answer.
    UserThumbsUp,
    /// The person disliked an answer.
    UserThumbsDown,
}

impl FeedbackSignal {
    const ALL: [Self; 5] = [
        Self::Correction,
        Self::ToolFailure,
        Self::SessionSummary,
        Self::UserThumbsUp,
        Self::UserThumbsDown,
    ];
}

impl From<FeedbackSignal> for u8 {
    fn from(signal: FeedbackSignal) -> Self {
        signal as Self
    }
}

impl TryFrom<u8> for FeedbackSignal {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        let signal = Self::ALL.get(usize::from(number)).copied();
        signal.ok_or_else(|| format!("{number} is no kind of feedback: expected 0 to 4"))
    }
}

/// Feedback of a process: gone when it ends. The newest 10 000 entries of each principal are kept.
#[derive(Debug, Default)]
pub struct InMemoryFeedbackStore {
    entries: Timeline<FeedbackEntry>,
}

impl InMemoryFeedbackStore {
    /// A store without entries.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Dated for FeedbackEntry {
    fn timestamp(&self) -> Timestamp {
        self.timestamp
    }
}

#[async_trait]
impl FeedbackStore for InMemoryFeedbackStore {
    async fn append(&self, principal: &Principal, entry: FeedbackEntry) -> Result<(), StoreError> {
        self.entries.append(principal, entry);
        Ok(())
    }

    async fn query_recent(
        &self,
        principal: &Principal,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<FeedbackEntry>, StoreError> {
        Ok(self.entries.recent(principal, since, limit))
    }

    async fn purge(&self, before: Timestamp, most: usize) -> Result<u64, StoreError> {
        Ok(self.entries.purge(before, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::conformance;

    #[tokio::test]
    async fn keeps_the_promises_of_a_feedback_store() {
        conformance::feedback_store(async || InMemoryFeedbackStore::new()).await;
    }

    #[tokio::test]
    async fn what_is_too_much_goes_from_its_oldest_end() {
        let (me, store) = (Principal::default(), InMemoryFeedbackStore::new());
        for millis in 0..10_002 {
            let entry = FeedbackEntry {
                id: millis.to_string(),
                session_id: "s".into(),
                signal_type: FeedbackSignal::Correction,
                summary: String::new(),
                detail: None,
                timestamp: Timestamp::from_millis(millis),
            };
            store.append(&me, entry).await.unwrap();
        }
        let kept = store.query_recent(&me, Timestamp::default(), usize::MAX).await.unwrap();
        assert_eq!((kept.len(), kept[0].id.as_str()), (10_000, "2"));
    }

    #[test]
    fn an_entry_on_disk() {
        let json = concat!(
            r#"{"id":"f1","sessionId":"s","signalType":3,"summary":"thanks","#,
            r#""timestamp":"2026-01-01T00:00:00.000Z"}"#,
        );
        let entry: FeedbackEntry = serde_json::from_str(json).unwrap();
        assert_eq!(entry.signal_type, FeedbackSignal::UserThumbsUp);
        assert_eq!(serde_json::to_string(&entry).unwrap(), json);
        assert!(serde_json::from_str::<FeedbackEntry>(&json.replace(":3", ":9")).is_err());
    }

    #[test]
    fn every_signal_survives_as_a_number() {
        for signal in FeedbackSignal::ALL {
            assert_eq!(FeedbackSignal::try_from(u8::from(signal)), Ok(signal));
        }
    }
}
