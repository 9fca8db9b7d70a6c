//! Leases and fencing of runs, shared by all journals: pure, with neither a clock nor a lock of
//! its own.

use std::sync::Arc;
use std::time::Duration;

use super::{Claim, Fence, HolderRequests, JournalError};
use crate::support::DigestMap;
use crate::{Timestamp, TurnId};

/// The leases and fencing tokens of a journal's unfinished runs.
///
/// A run is held from its acceptance or a claim until it is released or removed, or until its
/// lease has expired and another owner claims it. Each claim has a higher fence than the claim
/// before, and only the newest claim is valid. This makes a take-over safe: a holder that was
/// paused beyond its lease finds its fence outdated at its next write.
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
    /// The runs, each in the slot that its claims carry; `None` where the slot is free.
    slots: Vec<Option<ClaimedRun>>,
    free: Vec<u32>,
    by_run: DigestMap<TurnId, u32>,
}

#[derive(Debug)]
struct ClaimedRun {
    run: TurnId,
    fence: Fence,
    /// `None` after a release. The fence stays, so that the next claim gets a higher one.
    holder: Option<Holder>,
    /// Requests of others to the holder, the present one or the next.
    requests: HolderRequests,
}

#[derive(Debug)]
struct Holder {
    owner: Arc<str>,
    lease: Duration,
    until: Timestamp,
}

impl ClaimTable {
    /// Creates an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a new run that `owner` holds for `lease` from `now` on, and returns its claim.
    pub fn accept(&mut self, run: TurnId, owner: &str, lease: Duration, now: Timestamp) -> Claim {
        let fence = Fence(1);
        let slot = self.insert(run.clone(), fence, Some(Holder::new(owner, lease, now)));
        Claim::new(run, fence).with_slot(slot)
    }

    /// Adds a run without a holder whose last claim had `fence`, such as a run that a journal read
    /// from its file.
    pub fn restore(&mut self, run: TurnId, fence: Fence) {
        self.insert(run, fence, None);
    }

    /// Claims a run that is free, or whose lease has expired, for `owner`. Returns `None` if the run
    /// is held or is not in the table.
    pub fn claim(&mut self, run: &TurnId, owner: &str, lease: Duration, now: Timestamp) -> Option<Claim> {
        let slot = *self.by_run.get(run)?;
        let held = self.slots[slot as usize].as_mut()?;
        if held.holder.as_ref().is_some_and(|holder| now < holder.until) {
            return None;
        }
        // Higher than all earlier fences, so that a former holder that wakes up late is fenced off.
        held.fence = Fence(held.fence.0 + 1);
        held.holder = Some(Holder::new(owner, lease, now));
        Some(Claim::new(run.clone(), held.fence).with_slot(slot))
    }

    /// Checks that `claim` is the newest of its run, and renews its lease from `now` on. An expired
    /// lease is valid until another owner claims the run. Returns the requests of others to the
    /// holder.
    ///
    /// # Errors
    ///
    /// Returns [`JournalError::Fenced`] if the claim was superseded, released or removed.
    pub fn check(&mut self, claim: &Claim, now: Timestamp) -> Result<HolderRequests, JournalError> {
        let fenced = || JournalError::Fenced(claim.run().clone());
        let run = self.run_by(claim).ok_or_else(fenced)?;
        let holder = run.holder.as_mut().ok_or_else(fenced)?;
        holder.until = now.after(holder.lease);
        Ok(run.requests)
    }

    /// Requests of the holder of a run, the present one or the next, that the run is cancelled.
    /// Returns `false` if the run is not in the table.
    pub fn request_cancel(&mut self, run: &TurnId) -> bool {
        let slot = self.by_run.get(run).copied();
        let run = slot.and_then(|slot| self.slots[slot as usize].as_mut());
        let is_known = run.is_some();
        if let Some(run) = run {
            run.requests.cancel = true;
        }
        is_known
    }

    /// Releases a run. A superseded claim changes nothing.
    pub fn release(&mut self, claim: &Claim) {
        if let Some(run) = self.run_by(claim) {
            run.holder = None;
        }
    }

    /// Removes a run that is finished. Later writes with an old claim of it are fenced off.
    pub fn forget(&mut self, run: &TurnId) {
        if let Some(slot) = self.by_run.remove(run) {
            self.slots[slot as usize] = None;
            self.free.push(slot);
        }
    }

    /// Returns the owner of a run; `None` if it is free or its lease has expired.
    pub fn owner(&self, run: &TurnId, now: Timestamp) -> Option<&str> {
        let run = self.slots[*self.by_run.get(run)? as usize].as_ref()?;
        let holder = run.holder.as_ref()?;
        (now < holder.until).then_some(&*holder.owner)
    }

    /// Puts a run into its own slot, or into a free one, and returns that.
    fn insert(&mut self, run: TurnId, fence: Fence, holder: Option<Holder>) -> u32 {
        let slots = &mut self.slots;
        let free = &mut self.free;
        let slot = *self.by_run.entry(run.clone()).or_insert_with(|| {
            free.pop().unwrap_or_else(|| {
                slots.push(None);
                u32::try_from(slots.len() - 1).expect("fewer than 2³² runs are unfinished")
            })
        });
        slots[slot as usize] = Some(ClaimedRun {
            run,
            fence,
            holder,
            requests: HolderRequests::default(),
        });
        slot
    }

    /// Returns the run whose newest claim is `claim`.
    fn run_by(&mut self, claim: &Claim) -> Option<&mut ClaimedRun> {
        // A claim that another table made, or a caller, has no slot or a wrong one.
        let is_here =
            |slot: &u32| matches!(self.slots.get(*slot as usize), Some(Some(held)) if held.run == *claim.run());
        let slot = claim
            .slot()
            .filter(is_here)
            .or_else(|| self.by_run.get(claim.run()).copied())?;
        let run = self.slots[slot as usize].as_mut()?;
        // An older fence belongs to a superseded claim: it finds no holder, whatever its owner is.
        (run.fence == claim.fence()).then_some(run)
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
    fn a_late_holder_goes_on_unless_another_one_took_over() {
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

    #[test]
    fn a_slot_that_another_run_has_now_is_not_the_claims() {
        let mut claims = ClaimTable::new();
        let first = TurnId::from("first");
        let second = TurnId::from("second");
        let ended = claims.accept(first.clone(), "me", LEASE, at(0));
        claims.forget(&first);
        let running = claims.accept(second.clone(), "me", LEASE, at(0));
        assert_eq!(ended.slot(), running.slot());
        assert!(matches!(claims.check(&ended, at(0)), Err(JournalError::Fenced(run)) if run == first));
        claims.release(&ended);
        claims.check(&running, at(0)).unwrap();
        claims.check(&Claim::new(second, Fence(1)), at(0)).unwrap();
    }
}
