//! A batch of turns that a call of a tool runs and waits for.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rockbot_core::CallContext;
use rockbot_core::content::{Content, ContentPart, Provenance};
use rockbot_core::tool::{ToolError, ToolErrorCode, ToolFilter};
use rockbot_core::trust::Label;
use rockbot_core::turn::{ApprovalRequest, BudgetLimit, Delegation, TurnOutcome, TurnRequest, TurnRunner, TurnStatus};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::below::tools_without;

/// Maximum number of turns above a turn that runs a batch.
const MAX_DEPTH: u32 = 3;

/// Groups of tools that the turns of a batch do not have: these turns end with the batch, and
/// begin no further work.
const NOT_BELOW: [&str; 4] = ["subagents", "wisps", "workers", "scheduling"];

/// The turns of a host, with the permits of the turns that run at once.
#[derive(Debug)]
pub(crate) struct BatchRunner {
    turns: Arc<dyn TurnRunner>,
    permits: Semaphore,
}

/// The end of a turn of a batch.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The answer, or the reason why there is none.
    pub(crate) text: String,
    pub(crate) is_answer: bool,
    /// Limit that ended the turn early.
    pub(crate) limit: Option<BudgetLimit>,
    /// `true` if the answer announces a further step.
    pub(crate) is_unfinished: bool,
    /// Calls of the turn in words; empty if there were none.
    pub(crate) calls: String,
    /// Duration from the permit to the end. After a restart only the rest of the turn counts.
    pub(crate) took: Duration,
    pub(crate) label: Label,
}

impl BatchRunner {
    /// Creates a runner of at most `max_concurrent` turns at once.
    pub(crate) fn new(turns: Arc<dyn TurnRunner>, max_concurrent: usize) -> Self {
        Self {
            turns,
            permits: Semaphore::new(max_concurrent.min(Semaphore::MAX_PERMITS)),
        }
    }

    /// Runs turns within the rest of the caller's budget, and waits for all of them. A turn that
    /// ran before is not run again. When the call is cancelled, the turns are cancelled, too.
    ///
    /// # Errors
    ///
    /// Returns an error if the call is cancelled.
    pub(crate) async fn run(&self, requests: Vec<TurnRequest>, cx: &CallContext) -> Result<Vec<Ended>, ToolError> {
        if let Some(account) = cx.extension::<Delegation>() {
            account.expect(requests.len());
        }
        let running = join_all(requests.into_iter().map(|request| self.run_one(request, cx)));
        let ended = cx.cancellation().run_until_cancelled(running).await;
        ended.ok_or_else(|| ToolError::new(ToolErrorCode::Cancelled, "stopped: the turn ended first"))
    }

    async fn run_one(&self, request: TurnRequest, cx: &CallContext) -> Ended {
        // The semaphore is never closed, so every turn gets a permit in the end.
        let _permit = self.permits.acquire().await;
        let begun = Instant::now();
        // Cancel point: dropped here, the turn is cancelled.
        let mut ended = match Delegation::run(request, cx, |request| self.turns.run(request)).await {
            Ok(outcome) => match &outcome.status {
                TurnStatus::Parked(asks) => {
                    // Nothing waits for the turn any more, so the turn must not wait for a person.
                    let _ = self.turns.cancel(&outcome.turn).await;
                    Ended::failed(ApprovalRequest::unasked(asks).to_string())
                }
                _ => Ended::from(outcome),
            },
            Err(error) => Ended::failed(error.to_string()),
        };
        ended.took = begun.elapsed();
        ended
    }
}

impl Ended {
    /// Returns `true` if the turn did all of its work.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_answer && self.limit.is_none() && !self.is_unfinished
    }

    fn failed(text: String) -> Self {
        Self {
            text,
            is_answer: false,
            limit: None,
            is_unfinished: false,
            calls: String::new(),
            took: Duration::ZERO,
            label: Label::HOST,
        }
    }
}

impl From<TurnOutcome> for Ended {
    fn from(outcome: TurnOutcome) -> Self {
        let limit = match outcome.status {
            TurnStatus::Partial(limit) => Some(limit),
            _ => None,
        };
        Self {
            is_answer: outcome.is_answer(),
            is_unfinished: outcome.is_unfinished(),
            calls: outcome.call_ledger(),
            took: Duration::ZERO,
            text: outcome.text,
            limit,
            label: outcome.label,
        }
    }
}

/// Returns the tools of a batch's turns: the tools of the turn that runs the batch, except the
/// tools that begin further work.
pub(crate) fn tools_below(cx: &CallContext) -> ToolFilter {
    tools_without(&NOT_BELOW, cx)
}

/// Checks that the call may run turns below its own.
///
/// # Errors
///
/// Returns an error if there are too many turns above the call.
pub(crate) fn check_depth(cx: &CallContext) -> Result<(), ToolError> {
    if cx.depth() < MAX_DEPTH {
        Ok(())
    } else {
        Err(ToolError::new(
            ToolErrorCode::Denied,
            "not run: this work was begun by other work several times over. Do it yourself, with other tools.",
        ))
    }
}

/// Returns the text of a call's answer, with the join of the labels of the turns.
pub(crate) fn labelled<'a>(text: String, ended: impl IntoIterator<Item = &'a Ended>) -> Content {
    let mut label = Label::HOST;
    ended.into_iter().for_each(|ended| label.join(&ended.label));
    Content::from_iter([ContentPart::text(text).with_provenance(Provenance::labelled("agent", &label))])
}
