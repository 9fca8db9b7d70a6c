//! The announcements that wait, by principal, oldest first.

use std::collections::{BTreeMap, HashSet, VecDeque};

use rockbot_core::turn::Claim;
use rockbot_core::{Principal, TurnId};

/// The runs of announcements that wait, and who reads them.
#[derive(Debug, Default)]
pub(super) struct Index {
    waiting: BTreeMap<Principal, VecDeque<Entry>>,
    readers: BTreeMap<Principal, usize>,
}

#[derive(Debug)]
struct Entry {
    run: TurnId,
    /// The claim of this process, from the first attempt to deliver it on.
    claim: Option<Claim>,
    /// `true` while a taker has it.
    is_taken: bool,
}

impl Index {
    /// Adds a run. Returns the oldest run of the principal, which is removed, if there are more than
    /// `max` then.
    pub(super) fn add(&mut self, principal: &Principal, run: TurnId, max: usize) -> Option<TurnId> {
        let waiting = self.waiting.entry(principal.clone()).or_default();
        if waiting.iter().any(|entry| entry.run == run) {
            return None;
        }
        waiting.push_back(Entry {
            run,
            claim: None,
            is_taken: false,
        });
        let is_full = waiting.len() > max;
        let oldest = waiting.iter().position(|entry| !entry.is_taken).filter(|_| is_full)?;
        waiting.remove(oldest).map(|entry| entry.run)
    }

    /// Returns all runs that wait.
    pub(super) fn runs(&self) -> HashSet<TurnId> {
        let waiting = self.waiting.values().flatten();
        waiting.map(|entry| entry.run.clone()).collect()
    }

    /// Takes the oldest run of a principal, or of any principal without a reader.
    pub(super) fn take(&mut self, principal: Option<&Principal>) -> Option<(Principal, TurnId)> {
        let readers = &self.readers;
        let is_meant = |of: &Principal| principal.map_or(!readers.contains_key(of), |principal| principal == of);
        let lists = self.waiting.iter_mut().filter(|(of, _)| is_meant(of));
        let mut free = lists.filter_map(|(of, list)| Some((of, list.iter_mut().find(|entry| !entry.is_taken)?)));
        let (of, entry) = free.next()?;
        entry.is_taken = true;
        Some((of.clone(), entry.run.clone()))
    }

    /// Returns the runs that wait for a principal, oldest first.
    pub(super) fn ids(&self, principal: &Principal) -> Vec<TurnId> {
        let waiting = self.waiting.get(principal).into_iter().flatten();
        let free = waiting.filter(|entry| !entry.is_taken);
        free.map(|entry| entry.run.clone()).collect()
    }

    /// Takes this run of a principal. Returns `false` if it does not wait.
    pub(super) fn take_run(&mut self, principal: &Principal, run: &TurnId) -> bool {
        let mut list = self.waiting.get_mut(principal).into_iter().flatten();
        let entry = list.find(|entry| entry.run == *run);
        entry.is_some_and(|entry| !std::mem::replace(&mut entry.is_taken, true))
    }

    /// Puts a run back that was taken. Returns `false` if it is gone.
    pub(super) fn put_back(&mut self, principal: &Principal, run: &TurnId) -> bool {
        let mut list = self.waiting.get_mut(principal).into_iter().flatten();
        let entry = list.find(|entry| entry.run == *run);
        entry.is_some_and(|entry| std::mem::take(&mut entry.is_taken))
    }

    /// Removes a run.
    pub(super) fn remove(&mut self, principal: &Principal, run: &TurnId) {
        if let Some(list) = self.waiting.get_mut(principal) {
            list.retain(|entry| entry.run != *run);
        }
        self.waiting.retain(|_, list| !list.is_empty());
    }

    pub(super) fn is_claimed(&mut self, run: &TurnId) -> bool {
        self.entry(run).is_some_and(|entry| entry.claim.is_some())
    }

    /// Notes the claim of this process on a run.
    pub(super) fn claimed(&mut self, run: &TurnId, claim: Claim) {
        if let Some(entry) = self.entry(run) {
            entry.claim = Some(claim);
        }
    }

    /// Takes the claim of this process on a run, if it has one.
    pub(super) fn take_claim(&mut self, run: &TurnId) -> Option<Claim> {
        self.entry(run)?.claim.take()
    }

    pub(super) fn add_reader(&mut self, principal: &Principal) {
        *self.readers.entry(principal.clone()).or_default() += 1;
    }

    pub(super) fn remove_reader(&mut self, principal: &Principal) {
        let left = self.readers.get_mut(principal).map(|readers| {
            *readers = readers.saturating_sub(1);
            *readers
        });
        if left == Some(0) {
            self.readers.remove(principal);
        }
    }

    fn entry(&mut self, run: &TurnId) -> Option<&mut Entry> {
        self.waiting.values_mut().flatten().find(|entry| entry.run == *run)
    }
}
