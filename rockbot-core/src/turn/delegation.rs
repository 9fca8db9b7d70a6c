//! A call that runs turns below its own: the budgets of those turns, and their costs.
//!
//! The turns share the rest of the caller's budget. Each turn takes a share when it begins, gives
//! back the unused part when it ends, and takes more when its share is used up and other turns
//! have left something.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::{Budget, TurnError, TurnOutcome, TurnRequest};
use crate::chat::{MicroUsd, ModelTier, Spent};
use crate::{CallContext, TurnId};

/// The work of a turn below another turn, as the calling turn pays for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct DelegatedWork {
    /// Turn that did the work; `None` in a record of an earlier version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Number of model calls.
    pub model_calls: u32,
    /// Number of tool calls.
    pub tool_calls: u32,
    /// Tokens and cost of the answers, by tier.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tiers: BTreeMap<ModelTier, Spent>,
}

impl From<&TurnOutcome> for DelegatedWork {
    fn from(outcome: &TurnOutcome) -> Self {
        Self {
            turn: Some(outcome.turn.clone()),
            model_calls: outcome.model_calls,
            tool_calls: u32::try_from(outcome.calls.len()).unwrap_or(u32::MAX),
            tiers: outcome.tiers.clone(),
        }
    }
}

impl DelegatedWork {
    /// Subtracts the work from a budget. Time is not subtracted: turns run side by side.
    fn subtract_from(&self, budget: Budget) -> Budget {
        let spent: Spent = self.tiers.values().copied().sum();
        let tokens = |max: u64| max.saturating_sub(spent.usage.total());
        let cost = |max: MicroUsd| MicroUsd(max.0.saturating_sub(spent.cost.0));
        budget
            .with_max_model_calls(budget.max_model_calls.saturating_sub(self.model_calls))
            .with_max_tool_calls(budget.max_tool_calls.saturating_sub(self.tool_calls))
            .with_max_tokens(budget.max_tokens.map(tokens))
            .with_max_cost(budget.max_cost.map(cost))
    }
}

/// The account of a tool call that runs turns. The host gives an account to each call of a tool
/// that is declared with [`runs_turn`](crate::tool::ToolHints::runs_turn), as an extension of the
/// call's context.
///
/// [`Delegation::run`] is all that most tools need.
#[derive(Debug, Clone)]
pub struct Delegation {
    pool: Arc<Mutex<Pool>>,
    work: Arc<Mutex<Work>>,
}

/// The account of one turn that a call runs. It is an extension of the turn's request, and the
/// host of the turn finds it there.
#[derive(Debug, Clone)]
pub struct DelegatedTurn {
    of: Delegation,
    /// Maximum budget of the turn, even if more is left.
    max: Budget,
    allotted: Arc<Mutex<Budget>>,
}

/// The budget that the turns of concurrent calls share.
#[derive(Debug)]
struct Pool {
    left: Budget,
    /// Number of turns that are expected and have not begun.
    expected: u32,
    /// Number of turns that run.
    running: u32,
}

#[derive(Debug)]
struct Work {
    /// Number of turns of the call that are expected and have not begun.
    expected: u32,
    done: Vec<DelegatedWork>,
    is_interrupted: bool,
}

impl Delegation {
    /// Creates the accounts of `calls` that run concurrently and share the budget `left`.
    pub fn share(left: Budget, calls: usize) -> impl Iterator<Item = Self> {
        let pool = Arc::new(Mutex::new(Pool {
            left,
            expected: u32::try_from(calls).unwrap_or(u32::MAX),
            running: 0,
        }));
        let account = move || Self {
            pool: pool.clone(),
            work: Arc::new(Mutex::new(Work {
                expected: 1,
                done: Vec::new(),
                is_interrupted: false,
            })),
        };
        std::iter::repeat_with(account).take(calls)
    }

    /// Runs a turn on behalf of the call of `cx`: gives `run` the `request` with its
    /// [caller](TurnRequest::with_caller) set. The turn gets at most the rest of the caller's
    /// budget, and that budget pays for it. Usually `run` is the method of a
    /// [`TurnRunner`](super::TurnRunner).
    ///
    /// # Errors
    ///
    /// Returns an error as `run` does.
    pub async fn run<R>(
        request: TurnRequest,
        cx: &CallContext,
        run: impl FnOnce(TurnRequest) -> R,
    ) -> Result<TurnOutcome, TurnError>
    where
        R: Future<Output = Result<TurnOutcome, TurnError>>,
    {
        let mut request = request.with_caller(cx);
        let Some(account) = cx.extension::<Self>() else {
            return run(request).await;
        };
        let turn = account.begin(request.budget);
        request.budget = Some(turn.budget());
        request.extensions.insert(turn.clone());
        let ended = run(request).await;
        match &ended {
            Ok(outcome) => turn.end(outcome),
            Err(TurnError::Halted) => account.interrupt(),
            Err(_) => {}
        }
        ended
    }

    /// Expects `turns` turns of the call in place of one. They share the rest of the budget.
    pub fn expect(&self, turns: usize) {
        let more = u32::try_from(turns.saturating_sub(1)).unwrap_or(u32::MAX);
        let mut pool = lock(&self.pool);
        let mut work = lock(&self.work);
        pool.expected = pool.expected.saturating_add(more);
        work.expected = work.expected.saturating_add(more);
    }

    /// Expects no further turn of the call, which has ended.
    pub fn close(&self) {
        let mut pool = lock(&self.pool);
        let mut work = lock(&self.work);
        pool.expected = pool.expected.saturating_sub(std::mem::take(&mut work.expected));
    }

    /// Begins a turn with at most `max`, and takes its share of the rest of the budget.
    fn begin(&self, max: Option<Budget>) -> DelegatedTurn {
        let mut pool = lock(&self.pool);
        let mut work = lock(&self.work);
        let max = max.unwrap_or(pool.left);
        let expected = pool.expected;
        let allotted = pool.take(expected, max);
        if work.expected > 0 {
            work.expected -= 1;
            pool.expected -= 1;
        }
        pool.running += 1;
        DelegatedTurn {
            of: self.clone(),
            max,
            allotted: Arc::new(Mutex::new(allotted)),
        }
    }

    /// Enters the work of a turn that had ended before this account was opened: a turn that is
    /// found after a restart.
    pub fn enter(&self, outcome: &TurnOutcome) {
        lock(&self.work).done.push(outcome.into());
    }

    /// Notes that the host of a turn stopped before the turn ended. The turn continues when that host
    /// starts again.
    fn interrupt(&self) {
        lock(&self.work).is_interrupted = true;
    }

    /// Takes the work that was done since the last call of this method.
    pub fn take_work(&self) -> Vec<DelegatedWork> {
        std::mem::take(&mut lock(&self.work).done)
    }

    /// Returns `true` if a turn did not end, because its host stopped.
    pub fn is_interrupted(&self) -> bool {
        lock(&self.work).is_interrupted
    }
}

impl DelegatedTurn {
    /// Returns the budget of the turn so far.
    pub fn budget(&self) -> Budget {
        *lock(&self.allotted)
    }

    /// Takes more of the rest of the budget, for a turn whose share is used up. Returns the new
    /// budget of the turn, or `None` if nothing is left, or turns that have not begun need the
    /// rest.
    pub fn raise(&self) -> Option<Budget> {
        let mut pool = lock(&self.of.pool);
        let mut allotted = lock(&self.allotted);
        if pool.expected > 0 {
            return None;
        }
        let running = pool.running;
        let more = pool.take(running, minus(self.max, *allotted));
        let raised = plus(*allotted, more);
        if raised == *allotted {
            return None;
        }
        *allotted = raised;
        Some(raised)
    }

    /// Enters the work of the turn, which has ended, and gives back the unused part of its budget.
    fn end(&self, outcome: &TurnOutcome) {
        let work = DelegatedWork::from(outcome);
        let mut pool = lock(&self.of.pool);
        let mut allotted = lock(&self.allotted);
        pool.left = plus(pool.left, work.subtract_from(*allotted));
        pool.running = pool.running.saturating_sub(1);
        *allotted = nothing_of(*allotted);
        drop(pool);
        lock(&self.of.work).done.push(work);
    }
}

impl Pool {
    /// Takes the rest divided by `parts`, at least one call, and at most `max`. Time is not
    /// divided: turns run side by side.
    fn take(&mut self, parts: u32, max: Budget) -> Budget {
        let parts = parts.max(1);
        let part = |left: u64, max: u64| left.div_ceil(u64::from(parts)).min(max);
        let calls = |left: u32, max: u32| left.div_ceil(parts).min(max);
        let left = self.left;
        let taken = left
            .with_max_model_calls(calls(left.max_model_calls, max.max_model_calls))
            .with_max_tool_calls(calls(left.max_tool_calls, max.max_tool_calls))
            .with_max_wall_clock(left.max_wall_clock.min(max.max_wall_clock));
        let tokens = match (left.max_tokens, max.max_tokens) {
            (Some(left), of_turn) => Some(part(left, of_turn.unwrap_or(u64::MAX))),
            (None, of_turn) => of_turn,
        };
        let cost = match (left.max_cost, max.max_cost) {
            (Some(left), of_turn) => Some(MicroUsd(part(left.0, of_turn.map_or(u64::MAX, |max| max.0)))),
            (None, of_turn) => of_turn,
        };
        let taken = taken.with_max_tokens(tokens).with_max_cost(cost);
        self.left = minus(left, taken);
        taken
    }
}

/// Returns a budget with the limits of both added up. A limit that either budget lacks is
/// lacking; the time is the time of `budget`.
fn plus(budget: Budget, more: Budget) -> Budget {
    let tokens = budget.max_tokens.zip(more.max_tokens);
    let cost = budget.max_cost.zip(more.max_cost);
    budget
        .with_max_model_calls(budget.max_model_calls.saturating_add(more.max_model_calls))
        .with_max_tool_calls(budget.max_tool_calls.saturating_add(more.max_tool_calls))
        .with_max_tokens(tokens.map(|(tokens, more)| tokens.saturating_add(more)))
        .with_max_cost(cost.map(|(cost, more)| MicroUsd(cost.0.saturating_add(more.0))))
}

/// Returns `budget` without the limits of `taken`. A limit that `budget` lacks stays lacking; the
/// time is the time of `budget`.
fn minus(budget: Budget, taken: Budget) -> Budget {
    let tokens = |max: u64| max.saturating_sub(taken.max_tokens.unwrap_or(0));
    let cost = |max: MicroUsd| MicroUsd(max.0.saturating_sub(taken.max_cost.map_or(0, |cost| cost.0)));
    budget
        .with_max_model_calls(budget.max_model_calls.saturating_sub(taken.max_model_calls))
        .with_max_tool_calls(budget.max_tool_calls.saturating_sub(taken.max_tool_calls))
        .with_max_tokens(budget.max_tokens.map(tokens))
        .with_max_cost(budget.max_cost.map(cost))
}

fn nothing_of(budget: Budget) -> Budget {
    minus(budget, budget)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that can panic runs under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chat::Usage;
    use crate::turn::TurnStatus;

    fn calls(model: u32, tool: u32) -> Budget {
        Budget::default().with_max_model_calls(model).with_max_tool_calls(tool)
    }

    fn after(model_calls: u32, tokens: u64) -> TurnOutcome {
        let mut outcome = TurnOutcome::new("turn".into(), TurnStatus::Answered, "Done.");
        outcome.model_calls = model_calls;
        let usage = Usage::new(tokens, 0);
        let spent = Spent {
            usage,
            ..Spent::default()
        };
        outcome.tiers.insert(ModelTier::Low, spent);
        outcome
    }

    #[test]
    fn turns_that_begin_together_have_equal_shares() {
        let accounts: Vec<_> = Delegation::share(calls(10, 7), 3).collect();
        let shares = accounts.iter().map(|account| account.begin(None).budget());
        let shares: Vec<_> = shares
            .map(|share| (share.max_model_calls, share.max_tool_calls))
            .collect();
        assert_eq!(shares, [(4, 3), (3, 2), (3, 2)]);
    }

    #[test]
    fn a_turn_that_begins_later_has_what_the_one_before_left() {
        let left = calls(10, 0).with_max_tokens(1_000);
        let accounts: Vec<_> = Delegation::share(left, 2).collect();
        let first = accounts[0].begin(None);
        assert_eq!(first.budget(), calls(5, 0).with_max_tokens(500));
        first.end(&after(1, 100));
        assert_eq!(accounts[1].begin(None).budget(), calls(9, 0).with_max_tokens(900));
        assert_eq!(accounts[0].take_work()[0].model_calls, 1);
        assert_eq!(accounts[0].take_work(), []);
    }

    #[test]
    fn a_turn_that_runs_out_takes_what_others_left_within_its_own_limit() {
        let accounts: Vec<_> = Delegation::share(calls(10, 0), 3).collect();
        let first = accounts[0].begin(Some(calls(6, 0)));
        let second = accounts[1].begin(None);
        assert_eq!(first.raise(), None, "the third needs what is left");
        let third = accounts[2].begin(None);
        assert_eq!(first.raise(), None, "nothing is left");
        third.end(&after(1, 0));
        assert_eq!(first.raise(), Some(calls(5, 0)));
        assert_eq!(second.raise(), Some(calls(4, 0)));
        second.end(&after(0, 0));
        assert_eq!(first.raise(), Some(calls(6, 0)), "its own limit");
        assert_eq!(first.raise(), None);
    }

    #[test]
    fn a_call_of_several_turns_divides_its_share() {
        let account = Delegation::share(calls(8, 8), 1).next().expect("there is one");
        account.expect(4);
        assert_eq!(account.begin(None).budget(), calls(2, 2));
    }

    proptest! {
        #[test]
        fn the_sum_is_never_exceeded(
            model in 0_u32..100,
            tokens in 0_u64..10_000,
            steps in prop::collection::vec((0_u8..3, 0_usize..8, 0_u32..20), 0..60),
        ) {
            let left = calls(model, 3).with_max_tokens(tokens);
            let accounts: Vec<_> = Delegation::share(left, 4).collect();
            let mut turns: Vec<DelegatedTurn> = Vec::new();
            let mut used = 0;
            let mut used_tokens = 0;
            for (step, which, amount) in steps {
                match step {
                    0 => turns.push(accounts[which % 4].begin(None)),
                    1 if which < turns.len() => drop(turns[which].raise()),
                    2 if which < turns.len() => {
                        let turn = turns.remove(which);
                        let budget = turn.budget();
                        let spent = amount.min(budget.max_model_calls);
                        let spent_tokens = u64::from(amount).min(budget.max_tokens.unwrap_or(0));
                        turn.end(&after(spent, spent_tokens));
                        used += spent;
                        used_tokens += spent_tokens;
                    }
                    _ => {}
                }
                let allotted: u32 = turns.iter().map(|turn| turn.budget().max_model_calls).sum();
                let of_tokens: u64 = turns.iter().filter_map(|turn| turn.budget().max_tokens).sum();
                prop_assert!(used + allotted <= model);
                prop_assert!(used_tokens + of_tokens <= tokens);
            }
        }
    }
}
