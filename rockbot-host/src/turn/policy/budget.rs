//! Limits that a turn counts by itself. Time is not among them: the driver watches the clock.

use rockbot_core::chat::Usage;
use rockbot_core::turn::{Budget, BudgetLimit};

/// The limit that forbids asking the model once more, after `asked` calls that cost `usage`.
pub(in crate::turn) fn model_calls(budget: &Budget, asked: u32, usage: &Usage) -> Option<BudgetLimit> {
    if asked >= budget.max_model_calls {
        return Some(BudgetLimit::ModelCalls);
    }
    let spent = budget.max_tokens.is_some_and(|max| usage.total() >= max);
    spent.then_some(BudgetLimit::Tokens)
}

/// The limit that forbids `more` tool calls after `called`.
pub(in crate::turn) fn tool_calls(budget: &Budget, called: u32, more: usize) -> Option<BudgetLimit> {
    let wanted = u64::from(called) + more as u64;
    (wanted > u64::from(budget.max_tool_calls)).then_some(BudgetLimit::ToolCalls)
}
