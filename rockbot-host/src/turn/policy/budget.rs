//! The limits that the machine counts by itself. Wall-clock time is not among them: the driver
//! watches the clock, and reports it as an event.

use rockbot_core::chat::Spent;
use rockbot_core::turn::{Budget, BudgetLimit};

/// Returns the limit that forbids another question to the model, after `asked` questions that
/// cost `spent`.
///
/// A limit is checked before a question and not after its answer, so the last answer may exceed
/// it: it is paid for already.
pub(in crate::turn) fn model_calls(budget: &Budget, asked: u32, spent: &Spent) -> Option<BudgetLimit> {
    let limits = [
        (BudgetLimit::ModelCalls, asked >= budget.max_model_calls),
        (
            BudgetLimit::Tokens,
            budget.max_tokens.is_some_and(|max| spent.usage.total() >= max),
        ),
        (BudgetLimit::Cost, budget.max_cost.is_some_and(|max| spent.cost >= max)),
    ];
    let reached = limits
        .into_iter()
        .find_map(|(limit, is_reached)| is_reached.then_some(limit));
    reached.or(unknown_price(budget, spent))
}

/// Returns the limit of a turn whose cost must be known and is not, because an answer has no
/// known price.
pub(in crate::turn) fn unknown_price(budget: &Budget, spent: &Spent) -> Option<BudgetLimit> {
    let is_unknown = budget.max_cost.is_some() && spent.unpriced > 0;
    is_unknown.then_some(BudgetLimit::UnknownPrice)
}

/// Returns the limit that forbids `more` tool calls after `called`.
///
/// A group runs completely or not at all, so that no call of it is left without its neighbours.
pub(in crate::turn) fn tool_calls(budget: &Budget, called: u32, more: usize) -> Option<BudgetLimit> {
    let wanted = u64::from(called) + more as u64;
    (wanted > u64::from(budget.max_tool_calls)).then_some(BudgetLimit::ToolCalls)
}

#[cfg(test)]
mod tests {
    use rockbot_core::chat::{MicroUsd, Usage};

    use super::*;

    fn budget() -> Budget {
        Budget::default()
            .with_max_model_calls(3)
            .with_max_tool_calls(3)
            .with_max_tokens(100)
            .with_max_cost(MicroUsd(50))
    }

    #[track_caller]
    fn check(asked: u32, tokens: u64, cost: u64, unpriced: u64, expected: Option<BudgetLimit>) {
        let spent = Spent::default()
            .with_calls(asked.into())
            .with_usage(Usage::new(tokens, 0))
            .with_cost(MicroUsd(cost))
            .with_unpriced(unpriced);
        assert_eq!(model_calls(&budget(), asked, &spent), expected);
        let free = Budget::default().with_max_model_calls(u32::MAX);
        assert_eq!(model_calls(&free, asked, &spent), None);
    }

    #[test]
    fn a_spent_limit_forbids_asking() {
        check(2, 99, 49, 0, None);
        check(3, 99, 49, 0, Some(BudgetLimit::ModelCalls));
        check(2, 100, 49, 0, Some(BudgetLimit::Tokens));
        check(2, 99, 50, 0, Some(BudgetLimit::Cost));
        check(3, 100, 50, 0, Some(BudgetLimit::ModelCalls));
        check(2, 99, 49, 2, Some(BudgetLimit::UnknownPrice));
    }

    #[test]
    fn calls_of_tools_are_counted_before_they_run() {
        assert_eq!(tool_calls(&budget(), 1, 2), None);
        assert_eq!(tool_calls(&budget(), 2, 2), Some(BudgetLimit::ToolCalls));
    }
}
