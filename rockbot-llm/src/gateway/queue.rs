//! The queue of calls that wait for a permit, as pure bookkeeping: capacity, priority aging,
//! fairness.

use std::collections::BTreeMap;

use rockbot_core::chat::ModelTier;
use rockbot_core::context::Priority;
use rockbot_core::support::deadline_after;
use tokio::time::Instant;

use crate::limits::PermitLimits;

/// A ticket in a priority queue with aging: tickets are served in their order.
///
/// Priority is turned into time: each step below a user's priority delays the effective arrival
/// by one head start. So the order is fixed when a call arrives, needs no re-sorting as calls
/// age, and no call starves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket {
    /// Time of arrival, delayed by the head start of higher priorities.
    effective_arrival: Instant,
    /// Number of earlier tickets: calls of equal effective arrival are served first come, first served.
    sequence: u64,
}

/// Running calls, counted for each tier, and waiting calls, in order for each tier.
#[derive(Debug)]
pub(super) struct PermitQueue<W> {
    limits: PermitLimits,
    running: [usize; 3],
    waiting: [BTreeMap<Ticket, W>; 3],
    arrivals: u64,
}

/// The call was rejected: the queue is full, and the call is the last in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct QueueFull;

impl<W> PermitQueue<W> {
    pub(super) fn new(limits: PermitLimits) -> Self {
        Self {
            limits,
            running: [0; 3],
            waiting: Default::default(),
            arrivals: 0,
        }
    }

    /// Acquires a permit if one is free. Waiting calls are not overtaken: a free permit means that no
    /// call waits for it, because [`next_admitted`](Self::next_admitted) runs after each release.
    pub(super) fn try_acquire(&mut self, tier: ModelTier) -> bool {
        let has_room = self.has_room(tier);
        self.running[tier as usize] += usize::from(has_room);
        has_room
    }

    /// Enqueues a call. If the queue overflows, the last in order is dropped, which may be this one.
    pub(super) fn enqueue(
        &mut self,
        tier: ModelTier,
        priority: Priority,
        now: Instant,
        waiter: W,
    ) -> Result<Ticket, QueueFull> {
        self.arrivals += 1;
        let ticket = Ticket {
            effective_arrival: deadline_after(now, self.limits.head_start.saturating_mul(steps_below_user(priority))),
            sequence: self.arrivals,
        };
        self.waiting[tier as usize].insert(ticket, waiter);
        if self.waiting() > self.limits.max_waiting {
            let last = self.waiting.iter_mut().filter_map(BTreeMap::last_entry);
            if let Some(last) = last.max_by_key(|entry| *entry.key()) {
                let loser = *last.key();
                last.remove();
                return if loser == ticket { Err(QueueFull) } else { Ok(ticket) };
            }
        }
        Ok(ticket)
    }

    /// Releases the permit of a call that ended. Follow with [`PermitQueue::next_admitted`].
    pub(super) fn release(&mut self, tier: ModelTier) {
        self.running[tier as usize] -= 1;
    }

    /// Removes the first waiting call, in order, whose tier has a free permit, and counts it as
    /// running.
    pub(super) fn next_admitted(&mut self) -> Option<(ModelTier, W)> {
        let can_run = ModelTier::ALL.into_iter().filter(|tier| self.has_room(*tier));
        let first = can_run
            .filter_map(|tier| Some((*self.waiting[tier as usize].first_key_value()?.0, tier)))
            .min();
        let (ticket, tier) = first?;
        let waiter = self.waiting[tier as usize].remove(&ticket)?;
        self.running[tier as usize] += 1;
        Some((tier, waiter))
    }

    /// Removes a call that waits no more.
    pub(super) fn withdraw(&mut self, tier: ModelTier, ticket: Ticket) {
        self.waiting[tier as usize].remove(&ticket);
    }

    pub(super) fn running(&self) -> usize {
        self.running.iter().sum()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.iter().map(BTreeMap::len).sum()
    }

    fn has_room(&self, tier: ModelTier) -> bool {
        self.running[tier as usize] < self.limits.of(tier) && self.running() < self.limits.total.max(1)
    }
}

fn steps_below_user(priority: Priority) -> u32 {
    match priority {
        Priority::User => 0,
        Priority::Scheduled => 1,
        Priority::Subagent => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    const PRIORITIES: [Priority; 4] = [Priority::User, Priority::Scheduled, Priority::Subagent, Priority::Dream];

    /// Returns the order in which calls run that arrive at these seconds, when each waits for the one
    /// before.
    fn order(limits: PermitLimits, calls: &[(u64, Priority)]) -> Vec<usize> {
        let start = Instant::now();
        let mut queue = PermitQueue::new(limits);
        assert!(queue.try_acquire(ModelTier::High));
        for (number, (second, priority)) in calls.iter().enumerate() {
            assert!(!queue.try_acquire(ModelTier::Low));
            let _ = queue.enqueue(ModelTier::Low, *priority, start + Duration::from_secs(*second), number);
        }
        let mut order = Vec::new();
        queue.release(ModelTier::High);
        while let Some((tier, number)) = queue.next_admitted() {
            order.push(number);
            queue.release(tier);
        }
        order
    }

    #[test]
    fn the_higher_priority_goes_first_and_equals_in_order() {
        use Priority::*;
        let calls = [
            (0, Dream),
            (1, Subagent),
            (2, User),
            (3, Scheduled),
            (4, User),
            (5, Dream),
        ];
        assert_eq!(order(PermitLimits::serialized(), &calls), [2, 4, 3, 1, 0, 5]);
    }

    #[test]
    fn a_call_that_waited_long_enough_goes_before_a_user() {
        use Priority::*;
        let calls = [
            (0, Dream),
            (0, Scheduled),
            (29, User),
            (31, User),
            (89, User),
            (90, User),
            (91, User),
        ];
        assert_eq!(order(PermitLimits::serialized(), &calls), [2, 1, 3, 4, 0, 5, 6]);
    }

    #[test]
    fn a_head_start_without_end_keeps_the_order_of_priorities() {
        use Priority::*;
        let limits = PermitLimits::serialized().with_head_start(Duration::MAX);
        let calls = [(0, Dream), (0, Scheduled), (9, User)];
        assert_eq!(order(limits, &calls), [2, 0, 1]);
    }

    #[test]
    fn the_last_in_order_loses_its_place() {
        use Priority::*;
        let limits = PermitLimits {
            max_waiting: 2,
            ..PermitLimits::serialized()
        };
        assert_eq!(
            order(limits, &[(0, Dream), (1, Scheduled), (2, User), (3, Dream), (4, User)]),
            [2, 4]
        );
        assert_eq!(
            order(
                PermitLimits {
                    max_waiting: 0,
                    ..limits
                },
                &[(0, User)]
            ),
            Vec::<usize>::new()
        );
    }

    #[derive(Debug, Clone)]
    enum Act {
        Come(ModelTier, Priority),
        /// One of those who run ends.
        End(prop::sample::Index),
        /// One of those who wait goes away.
        GoAway(prop::sample::Index),
        Pass(u64),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            3 => (select(&ModelTier::ALL[..]), select(&PRIORITIES[..])).prop_map(|(tier, priority)| Act::Come(tier, priority)),
            2 => any::<prop::sample::Index>().prop_map(Act::End),
            1 => any::<prop::sample::Index>().prop_map(Act::GoAway),
            1 => (0u64..100).prop_map(Act::Pass),
        ];
        prop::collection::vec(act, 0..200)
    }

    /// The queue beside a plain list of who should run and wait.
    struct Model {
        limits: PermitLimits,
        queue: PermitQueue<usize>,
        now: Instant,
        /// Number and tier.
        running: Vec<(usize, ModelTier)>,
        /// Number, tier and place.
        waiting: Vec<(usize, ModelTier, Ticket)>,
        next: usize,
    }

    impl Model {
        fn act(&mut self, act: &Act) {
            match act {
                Act::Come(tier, priority) => self.come(*tier, *priority),
                Act::End(which) if !self.running.is_empty() => {
                    let (_, tier) = self.running.remove(which.index(self.running.len()));
                    self.queue.release(tier);
                    self.admit();
                }
                Act::GoAway(which) if !self.waiting.is_empty() => {
                    let (_, tier, place) = self.waiting.remove(which.index(self.waiting.len()));
                    self.queue.withdraw(tier, place);
                }
                Act::Pass(seconds) => self.now += Duration::from_secs(*seconds),
                Act::End(_) | Act::GoAway(_) => {}
            }
        }

        fn come(&mut self, tier: ModelTier, priority: Priority) {
            self.next += 1;
            if self.queue.try_acquire(tier) {
                self.running.push((self.next, tier));
                return;
            }
            if let Ok(place) = self.queue.enqueue(tier, priority, self.now, self.next) {
                self.waiting.push((self.next, tier, place));
                self.waiting.sort_by_key(|(_, _, place)| *place);
                self.waiting.truncate(self.limits.max_waiting);
            }
        }

        fn admit(&mut self) {
            while let Some((tier, number)) = self.queue.next_admitted() {
                let can_run = |tier: ModelTier| {
                    let running = self.running.iter().filter(|(_, other)| *other == tier).count();
                    running < self.limits.of(tier)
                };
                let first = self.waiting.iter().position(|(_, tier, _)| can_run(*tier)).unwrap();
                assert_eq!(self.waiting.remove(first).0, number, "the first that can run does");
                self.running.push((number, tier));
            }
        }

        fn check(&self) {
            assert_eq!(
                (self.queue.running(), self.queue.waiting()),
                (self.running.len(), self.waiting.len())
            );
            assert!(self.running.len() <= self.limits.total);
            for tier in ModelTier::ALL {
                let running = self.running.iter().filter(|(_, other)| *other == tier).count();
                let waiting = self.waiting.iter().filter(|(_, other, _)| *other == tier).count();
                assert!(running <= self.limits.of(tier));
                let is_free = running < self.limits.of(tier) && self.running.len() < self.limits.total;
                assert!(!is_free || waiting == 0, "no call waits for a permit that is free");
            }
        }
    }

    proptest! {
        #[test]
        fn no_permit_is_lost_or_given_twice(acts in acts(), total in prop_oneof![Just(1), Just(3), Just(usize::MAX)]) {
            let limits = PermitLimits { low: 3, balanced: 2, high: 1, total, max_waiting: 5, ..PermitLimits::default() };
            let mut model = Model {
                limits,
                queue: PermitQueue::new(limits),
                now: Instant::now(),
                running: Vec::new(),
                waiting: Vec::new(),
                next: 0,
            };
            for act in &acts {
                model.act(act);
                model.check();
            }
            while !model.running.is_empty() {
                let (_, tier) = model.running.remove(0);
                model.queue.release(tier);
                model.admit();
                model.check();
            }
            prop_assert_eq!(model.queue.waiting(), 0);
        }
    }
}
