//! Approval of calls by a user.
//!
//! A decision counts only for the exact call and arguments that the user was shown: a digest of
//! the arguments is part of it. All calls of an answer wait until every call that needs a
//! decision has one, so they still run in the model's order.

use rockbot_core::tool::ToolErrorCode;
use rockbot_core::turn::{Approval, ApprovalRequest};
use rockbot_core::{SessionId, TurnId};

use crate::turn::{CallState, CallStatus};

/// Returns the calls that wait for a decision, as requests to the user.
pub(in crate::turn) fn asks(turn: &TurnId, calls: &[CallState]) -> Vec<ApprovalRequest> {
    let undecided = calls.iter().filter(|call| call.is_undecided());
    let mut asks: Vec<ApprovalRequest> = Vec::new();
    for call in undecided {
        // One question for equal calls of an answer: its decision is for all of them.
        if asks.iter().all(|ask| ask.args_hash != call.args_hash()) {
            asks.push(call.ask(turn));
        }
    }
    // Most turns wait for one call, and thousands may wait for days.
    asks.shrink_to_fit();
    asks
}

/// Applies a decision. One about other arguments, or about a call that does not wait, changes
/// nothing.
pub(in crate::turn) fn decide(call: &mut CallState, decision: &Approval, session: &SessionId) {
    if !call.is_undecided() || decision.args_hash != call.args_hash() {
        return;
    }
    if decision.approved {
        if let Some(arguments) = &decision.arguments {
            call.change(arguments);
        }
        call.status = CallStatus::Waiting { granted: true };
    } else {
        let reason = decision.reason.as_deref().unwrap_or("no reason was given");
        let message = format!("the user refused this call: {reason}. Do not try it again; go on without it.");
        call.refuse(ToolErrorCode::Denied, &message, session);
    }
}

/// Refuses every call that was not decided before the approval expired.
pub(in crate::turn) fn expire(calls: &mut [CallState], session: &SessionId) {
    let message = "no user approved this call in time. Do not try it again; tell the user that it was not done.";
    let undecided = calls.iter_mut().filter(|call| call.is_undecided());
    undecided.for_each(|call| call.refuse(ToolErrorCode::Denied, message, session));
}

/// Maximum number of doubts in the text of a turn that waits.
const MAX_DOUBTS: usize = 4;

/// Returns the text of a turn that waits for approval, with the doubts about its calls.
pub(in crate::turn) fn waiting_text(asks: &[ApprovalRequest]) -> String {
    let tools: Vec<_> = asks.iter().map(|ask| format!("`{}`", ask.tool)).collect();
    let waiting = format!("Waiting for approval of {}", tools.join(", "));
    let origins = asks.iter().flat_map(|ask| &ask.origins);
    let doubts = origins.filter(|origin| origin.is_doubtful()).take(MAX_DOUBTS);
    let doubts: Vec<_> = doubts.map(ToString::to_string).collect();
    if doubts.is_empty() {
        format!("{waiting}.")
    } else {
        format!("{waiting}: {}.", doubts.join("; "))
    }
}
