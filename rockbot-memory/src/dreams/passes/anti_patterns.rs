//! Notes mistakes not to repeat, from corrections by the user and from failing tools.

use std::time::Duration;

use rockbot_core::Timestamp;
use rockbot_core::content::Provenance;
use rockbot_core::store::{FeedbackEntry, FeedbackSignal, StoreError};

use super::super::ask::{Item, Question};
use super::super::pass_context::PassContext;
use super::facts::{self, Facts, Filing, SHAPE};

/// Time for which feedback is looked at, as for rules: a mistake that comes back after two weeks is
/// one, too.
const SINCE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Maximum number of signals.
const MAX_SIGNALS: usize = 50;

/// Minimum number of signals: a single signal shows no pattern.
const MIN_SIGNALS: usize = 2;

const FILING: Filing = Filing {
    category: "anti-patterns",
    tag: "anti-pattern",
    min_sources: 2,
};

pub(super) async fn run(cx: &mut PassContext<'_>) -> Result<(), StoreError> {
    let signals = [FeedbackSignal::Correction, FeedbackSignal::ToolFailure];
    let items = signals_of(cx, SINCE, MAX_SIGNALS, &signals).await?;
    if items.len() < MIN_SIGNALS {
        return Ok(());
    }
    let question = Question {
        intro: "Corrections by the user, and failures of tools".to_owned(),
        items,
        shape: SHAPE,
    };
    if let Some(answer) = cx.ask::<Facts>(&question).await {
        facts::add(cx, &question, answer, &FILING).await?;
    }
    Ok(())
}

/// Returns the newest feedback of these kinds as texts of a question.
pub(super) async fn signals_of(
    cx: &PassContext<'_>,
    since: Duration,
    max: usize,
    kinds: &[FeedbackSignal],
) -> Result<Vec<Item>, StoreError> {
    let signals = feedback(cx, since).await?;
    let wanted = signals.iter().filter(|signal| kinds.contains(&signal.signal_type));
    let wanted: Vec<_> = wanted.collect();
    let newest = &wanted[wanted.len().saturating_sub(max)..];
    Ok(newest.iter().map(|signal| item(signal)).collect())
}

/// Returns the feedback that is at most `since` old.
pub(super) async fn feedback(cx: &PassContext<'_>, since: Duration) -> Result<Vec<FeedbackEntry>, StoreError> {
    /// Maximum number of entries that are read, the newest entries.
    const MAX_READ: usize = 2_000;
    let Some(feedback) = &cx.stores.feedback else {
        return Ok(Vec::new());
    };
    let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    let from = Timestamp::from_millis(cx.now.as_millis().saturating_sub(millis));
    feedback.query_recent(cx.who, from, MAX_READ).await
}

/// Returns feedback as a text of a question. A correction has the words of the user, and a
/// failure has the words of the host. A summary was written by a model that had read the
/// conversation, so it is untrusted.
pub(super) fn item(signal: &FeedbackEntry) -> Item {
    let from = match signal.signal_type {
        FeedbackSignal::Correction => Provenance::USER,
        FeedbackSignal::ToolFailure => Provenance::HOST,
        _ => Provenance::new("session", rockbot_core::trust::Trust::Untrusted),
    };
    let detail = signal.detail.as_deref().map(|detail| format!(" \"{detail}\""));
    Item {
        id: signal.id.clone(),
        text: format!("{}{}", signal.summary, detail.unwrap_or_default()),
        from,
    }
}
