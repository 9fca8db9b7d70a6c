//! The reports of a turn and its end, as a stream.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::future::BoxFuture;

use super::feed::FeedReader;
use super::{TurnError, TurnFeed, TurnOutcome, TurnProgress};
use crate::TurnId;

/// A stream of a turn's reports, which ends with [`TurnProgress::Final`] or an error.
///
/// Dropping the stream leaves the turn alone. A slow reader does not hold up the turn: pieces of
/// text that it has not read are merged into one. A turn that waits for a person reports
/// [`TurnProgress::ApprovalNeeded`], and the stream stays open.
///
/// ```
/// use rockbot_core::turn::{TurnEvents, TurnFeed, TurnOutcome, TurnProgress, TurnStatus};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::turn::TurnError> {
/// let feed = TurnFeed::new();
/// feed.push(TurnProgress::Delta("Tea, ".into()));
/// feed.push(TurnProgress::Delta("then.".into()));
/// let outcome = TurnOutcome::new("turn-1".into(), TurnStatus::Answered, "Tea, then.");
/// let end = Box::pin(async { Ok(outcome) });
///
/// let mut events = TurnEvents::new("turn-1".into(), Some(&feed), 5, end);
/// assert_eq!(events.next().await.unwrap()?, TurnProgress::Delta("then.".into()));
/// assert_eq!(events.sequence(), 10);
/// assert!(matches!(events.next().await.unwrap()?, TurnProgress::Final(outcome) if outcome.text == "Tea, then."));
/// assert!(events.next().await.is_none());
/// # Ok(())
/// # }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct TurnEvents {
    turn: TurnId,
    reports: Option<FeedReader>,
    /// The end of the turn, until it was returned.
    end: Option<TurnEnd>,
}

/// The end of a turn, in the future.
type TurnEnd = BoxFuture<'static, Result<TurnOutcome, TurnError>>;

impl TurnEvents {
    /// Creates the stream of the reports that `feed` has after the position `after` (0 for all),
    /// and of the end of the turn.
    pub fn new(turn: TurnId, feed: Option<&TurnFeed>, after: u64, end: TurnEnd) -> Self {
        Self {
            turn,
            reports: feed.map(|feed| feed.read_after(after)),
            end: Some(end),
        }
    }

    /// Returns the id of the turn.
    pub fn turn(&self) -> &TurnId {
        &self.turn
    }

    /// Returns the position after the last report that the stream returned: a stream that is
    /// created after it returns the rest. It grows with each report, by more than one for text.
    pub fn sequence(&self) -> u64 {
        self.reports.as_ref().map_or(0, FeedReader::position)
    }

    /// Returns the next report; `None` after the end. No report is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Result<TurnProgress, TurnError>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    fn poll_report(&mut self, cx: &mut Context<'_>) -> Poll<TurnProgress> {
        match &mut self.reports {
            Some(reports) => reports.poll_next(cx),
            None => Poll::Pending,
        }
    }
}

impl Stream for TurnEvents {
    type Item = Result<TurnProgress, TurnError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(end) = &mut self.end else {
            return Poll::Ready(None);
        };
        // Polled first: whatever the turn reported before its end is in the feed then.
        let ended = end.as_mut().poll(cx);
        if let Poll::Ready(progress) = self.poll_report(cx) {
            if let Poll::Ready(ended) = ended {
                self.end = Some(Box::pin(std::future::ready(ended)));
            }
            return Poll::Ready(Some(Ok(progress)));
        }
        match ended {
            Poll::Ready(ended) => {
                self.end = None;
                Poll::Ready(Some(ended.map(TurnProgress::Final)))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl fmt::Debug for TurnEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnEvents")
            .field("turn", &self.turn)
            .field("reports", &self.reports)
            .finish_non_exhaustive()
    }
}
