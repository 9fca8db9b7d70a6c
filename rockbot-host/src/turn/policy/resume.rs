//! Resume after the process ended.
//!
//! Finished calls are not run again. A call that may have run is run again only when that is
//! harmless. The tool of a mutating call is asked for its outcome; if the tool cannot answer, the
//! outcome is unknown, and the model reads that.

use rockbot_core::CallId;
use rockbot_core::tool::{Effect, ToolError, ToolErrorCode, ToolInvokeRequest, ToolInvokeResponse};
use rockbot_core::turn::{FinishedCall, TurnFailure, TurnStatus};

use super::ending::finished_text;
use crate::turn::{CallState, TurnStep};

/// The reply of a turn whose journal this version cannot read.
pub(in crate::turn) const UNKNOWN_VERSION: &str =
    "This request was begun by a newer version of this agent, so it could not be finished. Please send it again.";

/// Returns the calls of `group` that have not ended.
pub(in crate::turn) fn unfinished(group: &[CallId], calls: &[CallState]) -> Vec<CallId> {
    let in_group = |call: &&CallState| group.contains(&call.call.id) && !call.is_finished();
    calls.iter().filter(in_group).map(|call| call.call.id.clone()).collect()
}

/// Returns the mutating calls that may have run. Their tools must be asked for the outcome before
/// the turn continues.
pub(crate) fn uncertain(calls: &[CallState]) -> impl Iterator<Item = &CallState> {
    calls
        .iter()
        .filter(|call| call.is_started() && call.facts.effect == Effect::Mutating)
}

/// Returns the result that the model reads for a mutating call whose outcome is unknown.
pub(crate) fn outcome_unknown(request: ToolInvokeRequest) -> ToolInvokeResponse {
    let message = "outcome unknown: this call was interrupted and may or may not have taken effect. \
                   Check before you repeat it, and tell the user if you cannot check.";
    request.fail(&ToolError::new(ToolErrorCode::OutcomeUnknown, message))
}

/// Ends a turn that was interrupted too often.
///
/// A turn whose work brings down its process would otherwise bring down every later process, too.
pub(in crate::turn) fn abandon(resumes: u32, finished: &[FinishedCall]) -> TurnStep {
    let text = format!(
        "This request was interrupted {resumes} times, so it was given up. {}",
        finished_text(finished)
    );
    TurnStep::finish_with(TurnStatus::Failed(TurnFailure::Interrupted), text)
}
