//! Announcements of turns: answers that no caller waits for, and requests for approvals that no
//! caller can ask for.

use rockbot_core::content::{Content, ContentPart, Provenance};
use rockbot_core::support::{loggable, one_line};
use rockbot_core::turn::{Announcement, ApprovalRequest, RunState, TurnOutcome, TurnRequest, TurnStatus};
use rockbot_core::{Digest, Principal, SessionId, TurnId};

use super::TurnEngine;
use super::results::is_settled;
use crate::announcements::Taken;

/// Maximum length of the arguments in the words of a request for an approval, in bytes. The
/// request itself has all.
const MAX_ARGUMENTS: usize = 1000;

impl TurnEngine {
    /// Announces the answer to a message that no caller waits for.
    pub(super) async fn announce_end(&self, request: &TurnRequest, outcome: &TurnOutcome, results: &[TurnId]) -> bool {
        // The answer of the turn that the message joined reaches its own callers.
        if matches!(outcome.status, TurnStatus::Joined(_)) {
            return true;
        }
        let results = request.result_of.iter().chain(results).cloned().collect();
        let announcement = Announcement::new(
            request.principal.clone(),
            request.session.clone(),
            said(request, outcome),
        )
        .with_turn(outcome.turn.clone())
        .with_results(results)
        .with_label(outcome.label.clone());
        let appended = self.announcements.append(outcome.turn.as_str(), announcement).await;
        appended.map_or_else(|error| is_settled(&outcome.turn, &error.into()), |()| true)
    }

    /// Asks the principal of a turn, or its approver, for approvals that no caller can ask for.
    pub(super) async fn announce_approvals(&self, request: &TurnRequest, approvals: &[ApprovalRequest]) {
        let (principal, session) = asked_in(request);
        for approval in approvals {
            let words = question(request, approval);
            let announcement = Announcement::new(principal.clone(), session.clone(), words)
                .with_turn(approval.turn.clone())
                .with_approval(approval.clone());
            let id = format!("{}-{}", approval.turn, Digest::of([approval.call.as_str()]).short());
            if let Err(error) = self.announcements.append(&id, announcement).await {
                // The turn waits all the same, and is asked about again after a restart.
                tracing::error!(turn = %approval.turn, error = %loggable(&error.to_string()), "journal does not take a request for an approval");
            }
        }
    }

    /// Takes the next announcement to a principal, or with `None` to one without a reader. Requests
    /// for approvals that were decided meanwhile are left out.
    pub(crate) async fn take_announcement(&self, principal: Option<&Principal>) -> Option<Taken> {
        loop {
            let taken = self.announcements.take(principal).await?;
            match &taken.announcement.approval {
                Some(approval) if self.is_decided(approval).await => taken.delivered().await,
                _ => return Some(taken),
            }
        }
    }

    /// Returns `true` if this approval is not asked for any more.
    pub(super) async fn is_decided(&self, approval: &ApprovalRequest) -> bool {
        if let Some(live) = self.find(&approval.turn) {
            return !live.waits_for(approval);
        }
        let stored = self.journal.read(&approval.turn).await;
        // A turn that is not live yet may wait: this process resumes it later.
        stored.is_ok_and(|stored| stored.is_none_or(|run| matches!(run.state, RunState::Finished(_))))
    }
}

/// Puts the programs through which the work of a turn came before the agents that ask.
pub(super) fn add_chain(request: &TurnRequest, approvals: &mut [ApprovalRequest]) {
    let chain = request.approver.as_ref().map_or(&[][..], |approver| &approver.chain);
    for approval in approvals {
        approval.asked_by.splice(..0, chain.iter().cloned());
    }
}

/// Returns the principal who is asked for approvals, and the session: the approver's; else the
/// principal of the turn, in the session of the recipient of its result, or in its own.
fn asked_in(request: &TurnRequest) -> (Principal, SessionId) {
    if let Some(approver) = &request.approver {
        return (approver.principal.clone(), approver.session.clone());
    }
    let recipient = request.recipient.as_ref().map(|recipient| &recipient.session);
    (request.principal.clone(), recipient.unwrap_or(&request.session).clone())
}

/// Returns the words of a request for an approval.
fn question(request: &TurnRequest, approval: &ApprovalRequest) -> String {
    let tool = &approval.tool;
    let arguments = &approval.arguments;
    let arguments = if arguments.len() > MAX_ARGUMENTS {
        format!("{}…", &arguments[..arguments.floor_char_boundary(MAX_ARGUMENTS)])
    } else {
        arguments.clone()
    };
    let agents: Vec<_> = approval.asked_by.iter().map(|agent| format!("`{agent}`")).collect();
    let agents = if agents.is_empty() {
        String::new()
    } else {
        format!(" for {}", agents.join(" for "))
    };
    match &request.recipient {
        Some(recipient) => {
            let name = one_line(&recipient.name);
            format!("The background work \"{name}\" asks: may I call {tool}{agents} with {arguments}?")
        }
        None => format!("May I call {tool}{agents} with {arguments}?"),
    }
}

/// Returns the words of an announcement. A result that the agent could not tell is told as it is.
fn said(request: &TurnRequest, outcome: &TurnOutcome) -> Content {
    if outcome.is_answer() || request.result_of.is_none() {
        return outcome.content();
    }
    let words = outcome.content();
    let result = request.content.parts();
    // Without the request to the model at the end.
    let result = result.split_last().map_or(result, |(_, result)| result);
    let between = ContentPart::text("\n\n").with_provenance(Provenance::HOST);
    Content::from_iter(words.parts().iter().chain([&between]).chain(result).cloned())
}
