//! Interrupts: the approvals that a run waits for, and the decisions about them.

use rockbot_core::turn::{Approval, ApprovalRequest, TurnQuery};
use rockbot_core::{CallId, Digest, TurnId};
use serde::Serialize;
use serde_json::{Value, json};

use super::input::{ResumeEntry, ResumeStatus};
use crate::door::Caller;
use crate::error::WebError;

/// Separator of the parts of an id. Neither digests nor turns have it, and the call stands last.
const APART: char = '~';

/// The id of an interrupt: all that a decision needs, so that nothing has to be stored.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Interrupt {
    /// Turn of the run.
    pub(super) run: TurnId,
    /// Process and position in the turn's reports.
    at: String,
    /// Turn that makes the call: of the run, or of an agent that it asked.
    turn: TurnId,
    args_hash: Digest,
    pub(super) call: CallId,
}

/// An interrupt as the client reads it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShownInterrupt {
    id: String,
    reason: &'static str,
    message: String,
    tool_call_id: CallId,
    response_schema: Value,
    metadata: Value,
}

impl Interrupt {
    pub(super) fn parse(id: &str) -> Result<Self, WebError> {
        let unknown = || WebError::not_found(format!("there is no interrupt `{id}`"));
        let parts: Vec<_> = id.splitn(5, APART).collect();
        let [run, at, turn, args_hash, call] = parts[..] else {
            return Err(unknown());
        };
        Ok(Self {
            run: run.into(),
            at: at.to_owned(),
            turn: turn.into(),
            args_hash: serde_json::from_value(Value::from(args_hash)).map_err(|_| unknown())?,
            call: call.into(),
        })
    }

    /// Returns the position in the turn's reports that the client has read up to; 0 if it was in
    /// another process, where positions were others.
    pub(super) fn position(&self, epoch: &str) -> u64 {
        let at = self.at.rsplit_once('.').filter(|(of, _)| *of == epoch);
        at.and_then(|(_, at)| at.parse().ok()).unwrap_or_default()
    }

    /// Returns the decision that a client sends. An interrupt that the client abandons is denied.
    pub(super) fn decision(&self, entry: &ResumeEntry) -> Result<Approval, WebError> {
        let payload = &entry.payload;
        let approved = match entry.status {
            ResumeStatus::Cancelled => Some(false),
            ResumeStatus::Resolved => payload["approved"].as_bool().or(payload.as_bool()),
        };
        let approved = approved.ok_or_else(|| {
            WebError::invalid("the `payload` of a resolved interrupt is {\"approved\": true} or {\"approved\": false}")
        })?;
        let decision = json!({
            "turn": self.turn,
            "call": self.call,
            "argsHash": self.args_hash,
            "approved": approved,
            "reason": payload["reason"].as_str(),
        });
        serde_json::from_value(decision).map_err(|error| WebError::invalid(error.to_string()))
    }
}

impl ShownInterrupt {
    pub(super) fn new(run: &TurnId, at: &str, approval: &ApprovalRequest) -> Self {
        let ApprovalRequest {
            turn,
            call,
            tool,
            args_hash,
            ..
        } = approval;
        Self {
            id: format!("{run}{APART}{at}{APART}{turn}{APART}{args_hash}{APART}{call}"),
            reason: "tool_approval",
            message: format!("May the agent call `{tool}` with {}?", approval.arguments),
            tool_call_id: call.clone(),
            response_schema: json!({
                "type": "object",
                "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
                "required": ["approved"],
            }),
            metadata: json!({"approval": approval}),
        }
    }
}

/// Returns the calls of a run, and of the agents that it asked, that wait for a decision of the user.
pub(super) fn pending(caller: &Caller, run: &TurnId) -> Vec<ApprovalRequest> {
    let turns = &caller.door.turns;
    let live = turns.live(&TurnQuery::default().with_principal(caller.principal.clone()));
    let is_below = |turn: &TurnId| {
        let mut turn = turn;
        // No chain of agents is longer than all turns.
        for _ in 0..=live.len() {
            if turn == run {
                return true;
            }
            let parent = live.iter().find(|live| live.turn == *turn);
            match parent.and_then(|live| live.request.parent.as_ref()) {
                Some(parent) => turn = &parent.turn,
                None => return false,
            }
        }
        false
    };
    let mut approvals = turns.approvals(&caller.principal);
    approvals.retain(|approval| is_below(&approval.turn));
    approvals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_all_that_a_decision_needs() {
        let approval = ApprovalRequest::new("t2", "call~1", "pay", r#"{"n":7}"#);
        let shown = ShownInterrupt::new(&"t1".into(), "e1.17", &approval);
        let read = Interrupt::parse(&shown.id).unwrap();
        assert_eq!(
            (read.run.as_str(), read.position("e1"), read.position("e2")),
            ("t1", 17, 0)
        );
        let entry = |status, payload| ResumeEntry {
            interrupt_id: shown.id.clone(),
            status,
            payload,
        };
        let resolved = |payload| read.decision(&entry(ResumeStatus::Resolved, payload));
        assert_eq!(resolved(json!({"approved": true})).unwrap(), approval.approve());
        assert_eq!(resolved(json!(true)).unwrap(), approval.approve());
        assert_eq!(
            resolved(json!({"approved": false, "reason": "no"})).unwrap(),
            approval.deny("no")
        );
        let cancelled = read
            .decision(&entry(ResumeStatus::Cancelled, json!({"approved": true})))
            .unwrap();
        assert!(!cancelled.approved);
        assert!(resolved(json!("yes")).is_err());
        for odd in ["", "a~b", "a~b~c~d~e"] {
            assert!(Interrupt::parse(odd).is_err(), "{odd}");
        }
    }
}
