//! Feedback: signals of answer quality, collected so that the agent can improve.

use serde::{Deserialize, Serialize};

use super::timeline::{InMemoryTimeline, TimelineEntry, TimelineStore};
use crate::{SessionId, Timestamp};

/// A store of feedback: a [`TimelineStore`] of [`FeedbackEntry`].
///
/// Implemented for every `TimelineStore<FeedbackEntry>`; implement that trait, not
/// `FeedbackStore`. The conformance suite `testing::conformance::feedback_store` checks an
/// implementation.
pub trait FeedbackStore: TimelineStore<FeedbackEntry> {}

impl<S: TimelineStore<FeedbackEntry> + ?Sized> FeedbackStore for S {}

/// A signal of how well the agent did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FeedbackEntry {
    /// Unique id of the entry.
    pub id: String,
    /// Session that the signal is about.
    pub session_id: SessionId,
    /// Kind of the signal.
    pub signal_type: FeedbackSignal,
    /// Content of the signal, in one sentence.
    pub summary: String,
    /// Further detail, if any: for a summary of a session, its JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Time of the signal.
    #[serde(with = "crate::rfc3339")]
    pub timestamp: Timestamp,
}

impl FeedbackEntry {
    /// Creates an entry without further detail.
    pub fn new(
        id: impl Into<String>,
        session_id: impl Into<SessionId>,
        signal_type: FeedbackSignal,
        summary: impl Into<String>,
        timestamp: Timestamp,
    ) -> Self {
        Self {
            id: id.into(),
            session_id: session_id.into(),
            signal_type,
            summary: summary.into(),
            detail: None,
            timestamp,
        }
    }

    /// Sets the further detail, if any: for a summary of a session, its JSON.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

/// The kind of a feedback entry. Serialized as a number, from 0 to 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
#[non_exhaustive]
pub enum FeedbackSignal {
    /// The user corrected the agent.
    Correction,
    /// A tool failed.
    ToolFailure,
    /// A session was evaluated after its end.
    SessionSummary,
    /// The user liked an answer.
    UserThumbsUp,
    /// The user disliked an answer.
    UserThumbsDown,
    /// A wisp succeeded whose definition was wrong before.
    WispCorrection,
}

impl FeedbackSignal {
    const ALL: [Self; 6] = [
        Self::Correction,
        Self::ToolFailure,
        Self::SessionSummary,
        Self::UserThumbsUp,
        Self::UserThumbsDown,
        Self::WispCorrection,
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
        signal.ok_or_else(|| format!("{number} is not a kind of feedback: expected 0 to 5"))
    }
}

/// A [`FeedbackStore`] in memory, lost when the process ends. Keeps the newest 10 000 entries of
/// each principal.
pub type InMemoryFeedbackStore = InMemoryTimeline<FeedbackEntry>;

impl TimelineEntry for FeedbackEntry {
    fn session(&self) -> &SessionId {
        &self.session_id
    }

    fn timestamp(&self) -> Timestamp {
        self.timestamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Principal;
    use crate::testing::conformance;

    #[tokio::test]
    async fn keeps_the_promises_of_a_feedback_store() {
        conformance::feedback_store(async || InMemoryFeedbackStore::new()).await;
    }

    #[tokio::test]
    async fn a_full_store_drops_its_oldest_entries() {
        let me = Principal::default();
        let store = InMemoryFeedbackStore::new();
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
