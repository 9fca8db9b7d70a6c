//! Parked turns: decisions about their calls.

use std::sync::Arc;

use rockbot_core::support::loggable;
use rockbot_core::turn::{Approval, ApprovalRequest, BusyPolicy, Claim, JournalError, TurnRequest, TurnStatus};
use rockbot_core::{Principal, TurnId};
use tokio::sync::oneshot;

use super::claim::HeldClaim;
use super::earlier_reports::live_again;
use super::{TurnEngine, TurnError, check_runtime};
use crate::driver::DriveStart;
use crate::live::{LiveTurn, TurnState};
use crate::turn::{Turn, TurnEvent, TurnStep, record};

impl TurnEngine {
    /// Applies a person's decision about a call. Once this returns, the decision is in the journal;
    /// after the last decision that the turn waited for, the turn continues.
    ///
    /// The principal `by` must be the principal of the turn, or an approver of the turn or of the
    /// host. Another principal learns no more than that nothing waits for the decision.
    pub(crate) async fn decide(self: &Arc<Self>, decision: Approval, by: &Principal) -> Result<(), TurnError> {
        let id = decision.turn.clone();
        let missing = TurnError::NoSuchApproval {
            turn: id.clone(),
            call: decision.call.clone(),
        };
        self.check_arguments(&decision, by)?;
        let event = TurnEvent::ApprovalDecided(decision.clone());
        let engine = self.clone();
        let by = by.clone();
        let applies = move |turn: &Turn| {
            let may_decide = engine.may_decide(&by, turn.request());
            if !may_decide {
                let turn = &decision.turn;
                let by = loggable(by.as_str());
                tracing::warn!(%turn, %by, "decision about a tool call refused: it is another principal's turn");
            }
            let call = &decision.call;
            let arguments = &decision.args_hash;
            may_decide && waits_for(turn, |request| (&request.call, &request.args_hash) == (call, arguments))
        };
        if self.unpark(&id, event, applies).await? {
            Ok(())
        } else {
            Err(missing)
        }
    }

    /// Checks that the arguments of a decision, if it has other arguments than the call, fit the tool.
    fn check_arguments(&self, decision: &Approval, by: &Principal) -> Result<(), TurnError> {
        let Some(arguments) = &decision.arguments else {
            return Ok(());
        };
        let requests = self.approval_requests(by);
        let asked = requests
            .iter()
            .find(|request| (&request.turn, &request.call) == (&decision.turn, &decision.call));
        // Without a request, nothing waits for the decision.
        asked.map_or(Ok(()), |asked| {
            let checked = self.driver.tools.check_arguments(&asked.tool, arguments);
            checked.map_err(TurnError::Arguments)
        })
    }

    /// Reports whether `by` decides about calls of the turn of `request`.
    pub(crate) fn may_decide(&self, by: &Principal, request: &TurnRequest) -> bool {
        let is_asked = request
            .approver
            .as_ref()
            .is_some_and(|approver| approver.principal == *by);
        is_asked || self.speaks_for(by, &request.principal)
    }

    /// Reports whether `by` is a principal, or an approver of the host.
    pub(super) fn speaks_for(&self, by: &Principal, principal: &Principal) -> bool {
        by == principal || self.approvers.contains(by)
    }

    /// Returns the approval requests of the parked turns about which `by` decides, sorted by turn and
    /// call.
    pub(crate) fn approval_requests(&self, by: &Principal) -> Vec<ApprovalRequest> {
        let of_parked = |live: &Arc<LiveTurn>| match live.state() {
            TurnState::Parked(outcome) => match &outcome.status {
                TurnStatus::Parked(requests) => {
                    let mut requests = requests.clone();
                    self.name_callers(live, &mut requests);
                    requests
                }
                _ => Vec::new(),
            },
            TurnState::Working | TurnState::Ended(_) | TurnState::Halted => Vec::new(),
        };
        let turns = self
            .live
            .matching(|turn| turn.approver == Some(by) || self.speaks_for(by, turn.principal));
        let mut requests: Vec<_> = turns.iter().flat_map(of_parked).collect();
        requests.sort_by(|a, b| (&a.turn, &a.call).cmp(&(&b.turn, &b.call)));
        requests
    }

    /// Applies `event` to a parked turn if `applies` returns `true` for it. Returns whether it did.
    ///
    /// A task of the host does it: a caller that goes away after the write must not leave a turn that
    /// is decided and does not run.
    pub(super) async fn unpark(
        self: &Arc<Self>,
        id: &TurnId,
        event: TurnEvent,
        applies: impl FnOnce(&Turn) -> bool + Send + 'static,
    ) -> Result<bool, TurnError> {
        check_runtime()?;
        let engine = self.clone();
        let id = id.clone();
        let (sender, applied) = oneshot::channel();
        self.spawn(async move {
            // The caller may be gone.
            let _ = sender.send(engine.apply_to_parked(&id, event, applies).await);
        });
        applied.await.unwrap_or(Err(TurnError::Halted))
    }

    /// Applies `event` to a parked turn in the caller's task.
    pub(super) async fn apply_to_parked(
        self: &Arc<Self>,
        id: &TurnId,
        event: TurnEvent,
        applies: impl FnOnce(&Turn) -> bool,
    ) -> Result<bool, TurnError> {
        // Held across journal writes: if two decisions come at once, the second sees the turn with
        // the first decision recorded.
        let _unparking = self.unparking.lock().await;
        let Some((claim, mut turn)) = self.take_over(id).await? else {
            return Ok(false);
        };
        if !applies(&turn) {
            claim.release().await;
            return Ok(false);
        }
        let waited_until = turn.parked_until();
        // Written before anything follows from it: after a crash the decision stands.
        let steps = match self.write(&claim, &mut turn, event).await {
            Ok(steps) => steps,
            Err(error) => {
                claim.release().await;
                return Err(error.into());
            }
        };
        if let Some(until) = waited_until {
            self.expiries.remove(id, until);
        }
        let live = self.find(id).unwrap_or_else(|| live_again(&turn, None));
        if let (Some(until), Some(outcome)) = (turn.parked_until(), turn.outcome()) {
            // Other calls of the turn are undecided still.
            claim.release().await;
            live.publish(TurnState::Parked(Arc::new(outcome)));
            self.register(&live);
            self.live.compact(&live);
            self.expire_at(id, until);
            return Ok(true);
        }
        self.spawn_unparked(live, claim, turn, steps);
        Ok(true)
    }

    /// Spawns the task of a turn that is no longer parked. It joins the end of its session's queue.
    fn spawn_unparked(self: &Arc<Self>, live: Arc<LiveTurn>, claim: HeldClaim, turn: Box<Turn>, steps: Vec<TurnStep>) {
        live.set_permit(Some(self.sessions.count(live.request())));
        live.reopen();
        self.register(&live);
        let admission = self.sessions.enter(&live, BusyPolicy::Queue);
        let engine = self.clone();
        let span = self.span(&live);
        let task = Box::pin(async move {
            engine
                .run_in_session(live, claim, turn, admission, Some(DriveStart::Steps(steps)))
                .await
        });
        self.spawn_in(span, task);
    }

    async fn write(&self, claim: &Claim, turn: &mut Turn, event: TurnEvent) -> Result<Vec<TurnStep>, JournalError> {
        let at = self.clock.now();
        let steps = turn.on(&event, at);
        let record = record(event, steps.clone(), at, false);
        self.journal.append(claim, &[record]).await?;
        Ok(steps)
    }
}

fn waits_for(turn: &Turn, matches: impl Fn(&ApprovalRequest) -> bool) -> bool {
    match turn.outcome().map(|outcome| outcome.status) {
        Some(TurnStatus::Parked(requests)) => requests.iter().any(matches),
        _ => false,
    }
}
