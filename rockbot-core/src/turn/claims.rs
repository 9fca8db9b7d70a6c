//! Who holds which run: the fencing that every journal shares. Pure, without clock or lock of its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Claim, Fence, JournalError};
use crate::{Timestamp, TurnId};

/// The claims of a journal's unfinished runs.
///
/// A run is held from its acceptance or a claim until it is released, forgotten, or its lease has run out and
/// somebody else claims it. Each claim has a higher fence than the one before; only the newest is good.
///
/// ```
/// use std::time::Duration;
/// use rockbot_core::Timestamp;
/// use rockbot_core::turn::ClaimTable;
///
/// let (lease, start) = (Duration::from_secs(60), Timestamp::from_millis(0));
/// let mut claims = ClaimTable::new();
/// let first = claims.accept("run".into(), "me", lease, start);
/// assert!(claims.claim(&"run".into(), "you", lease, start).is_none());
///
/// let second = claims.claim(&"run".into(), "you", lease, start.after(lease)).expect("the lease has run out");
/// assert!(claims.check(&first, start.after(lease)).is_err());
/// assert!(claims.check(&second, start.after(lease)).is_ok());
/// ```
#[derive(Debug, Default)]
pub struct ClaimTable {
    runs: HashMap<TurnId, Run>,
}

#[derive(Debug)]
struct Run {
    fence: Fence,
    /// `None` after a release.
    holder: Option<Holder>,
}

#[derive(Debug)]
struct Holder {
    owner: Arc<str>,
    lease: Duration,
    until: Timestamp,
}

impl ClaimTable {
    /// A table without runs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a new run that `owner` holds for `lease` from `now` on.
    pub fn accept(&mut self, run: TurnId, owner: &str, lease: Duration, now: Timestamp) -> Claim {
        let fence = Fence(1);
        let holder = Some(Holder::new(owner, lease, now));
        self.runs.insert(run.clone(), Run { fence, holder });
        Claim::new(run, fence)
    }

    /// Adds a run that nobody holds and whose last claim had `fence`: one that a journal found in its file.
    pub fn restore(&mut self, run: TurnId, fence: Fence) {
        self.runs.insert(run, Run { fence, holder: None });
    }

    /// Gives a run that is free, or whose holder's lease has run out, to `owner`. `None` when somebody holds it
    /// or it is not in the table.
    pub fn claim(&mut self, run: &TurnId, owner: &str, lease: Duration, now: Timestamp) -> Option<Claim> {
        let held = self.runs.get_mut(run)?;
        if held.holder.as_ref().is_some_and(|holder| now < holder.until) {
            return None;
        }
        held.fence = Fence(held.fence.0 + 1);
        held.holder = Some(Holder::new(owner, lease, now));
        Some(Claim::new(run.clone(), held.fence))
    }

    /// Checks that `claim` is the newest of its run, and extends its lease from `now` on. A lease that has run
    /// out is good until somebody else claims the run.
    ///
    /// # Errors
    ///
    /// Fails with [`JournalError::Fenced`] when the claim was superseded, released or forgotten.
    pub fn check(&mut self, claim: &Claim, now: Timestamp) -> Result<(), JournalError> {
        let holder = self.holder_by(claim).and_then(Option::as_mut);
        let holder = holder.ok_or_else(|| JournalError::Fenced(claim.run().clone()))?;
        holder.until = now.after(holder.lease);
        Ok(())
    }

    /// Makes the run free. An old claim changes nothing.
    pub fn release(&mut self, claim: &Claim) {
        if let Some(holder) = self.holder_by(claim) {
            *holder = None;
        }
    }

    /// Removes a run: it is finished. An old claim of it is fenced from then on.
    pub fn forget(&mut self, run: &TurnId) {
        self.runs.remove(run);
    }

    /// Who holds the run, if anybody does and the lease has not run out.
    pub fn owner(&self, run: &TurnId, now: Timestamp) -> Option<&str> {
        let holder = self.runs.get(run)?.holder.as_ref()?;
        (now < holder.until).then_some(&*holder.owner)
    }

    fn holder_by(&mut self, claim: &Claim) -> Option<&mut Option<Holder>> {
        let run = self.runs.get_mut(claim.run())?;
        (run.fence == claim.fence()).then_some(&mut run.holder)
    }
}

impl Holder {
    fn new(owner: &str, lease: Duration, now: Timestamp) -> Self {
        Self {
            owner: owner.into(),
            lease,
            until: now.after(lease),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn a_lease_ends_exactly_at_its_end() {
        let mut claims = ClaimTable::new();
        let run = TurnId::from("run");
        claims.accept(run.clone(), "me", LEASE, at(0));
        assert_eq!(
            (claims.owner(&run, at(59)), claims.owner(&run, at(60))),
            (Some("me"), None)
        );
        assert_eq!(claims.claim(&run, "you", LEASE, at(59)), None);
        assert_eq!(
            claims.claim(&run, "you", LEASE, at(60)),
            Some(Claim::new(run, Fence(2)))
        );
    }

    #[test]
    fn a_late_holder_goes_on_when_nobody_took_over() {
        let mut claims = ClaimTable::new();
        let run = TurnId::from("run");
        let claim = claims.accept(run.clone(), "me", LEASE, at(0));
        claims.check(&claim, at(100)).unwrap();
        assert_eq!(claims.claim(&run, "you", LEASE, at(159)), None);
    }

    #[test]
    fn a_restored_run_is_free_and_its_fence_goes_on() {
        let mut claims = ClaimTable::new();
        let run = TurnId::from("run");
        claims.restore(run.clone(), Fence(7));
        assert!(claims.check(&Claim::new(run.clone(), Fence(7)), at(0)).is_err());
        assert_eq!(claims.claim(&run, "me", LEASE, at(0)), Some(Claim::new(run, Fence(8))));
    }
}
