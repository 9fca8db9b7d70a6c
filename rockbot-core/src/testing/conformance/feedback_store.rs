//! The conformance suite of [`FeedbackStore`].

use super::timeline::timeline;
use crate::Timestamp;
use crate::store::{FeedbackEntry, FeedbackSignal, FeedbackStore};

/// Checks that the stores that `make` creates keep the contract of [`FeedbackStore`].
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn feedback_store<S: FeedbackStore>(make: impl AsyncFn() -> S) {
    let entry = |session: &str, millis| FeedbackEntry {
        id: format!("f{millis}"),
        session_id: session.into(),
        signal_type: FeedbackSignal::Correction,
        summary: "two\nlines".to_owned(),
        detail: Some("{}".to_owned()),
        timestamp: Timestamp::from_millis(millis),
    };
    timeline(make, entry).await;
}
