//! Sums of usage and cost over several answers.

use std::iter::Sum;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::{ChatResponse, MicroUsd, Usage};

/// The sum of usage and cost of several answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Spent {
    /// Number of answers.
    pub calls: u64,
    /// Tokens of these answers.
    pub usage: Usage,
    /// Price of these answers, as far as it is known.
    #[serde(skip_serializing_if = "is_nothing")]
    pub cost: MicroUsd,
    /// Number of answers without a known price. If it is not zero, [`Spent::cost`] is a lower bound.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced: u64,
}

// serde passes fields by reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_nothing(amount: &MicroUsd) -> bool {
    *amount == MicroUsd(0)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Spent {
    /// Returns the usage and cost of one answer.
    pub fn on(answer: &ChatResponse) -> Self {
        Self {
            calls: 1,
            usage: answer.usage.unwrap_or_default(),
            cost: answer.cost.unwrap_or_default(),
            unpriced: u64::from(answer.cost.is_none()),
        }
    }

    /// Sets the number of answers.
    #[must_use]
    pub fn with_calls(mut self, calls: u64) -> Self {
        self.calls = calls;
        self
    }

    /// Sets the tokens of these answers.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets the price of these answers, as far as it is known.
    #[must_use]
    pub fn with_cost(mut self, cost: MicroUsd) -> Self {
        self.cost = cost;
        self
    }

    /// Sets the number of answers without a known price.
    #[must_use]
    pub fn with_unpriced(mut self, unpriced: u64) -> Self {
        self.unpriced = unpriced;
        self
    }

    /// Returns the cost of all answers, or `None` if the cost of any answer is unknown.
    pub fn price(&self) -> Option<MicroUsd> {
        (self.unpriced == 0).then_some(self.cost)
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.usage += other.usage;
        self.cost += other.cost;
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
    }
}

impl Sum for Spent {
    fn sum<I: Iterator<Item = Self>>(spent: I) -> Self {
        spent.fold(Self::default(), |mut sum, spent| {
            sum += spent;
            sum
        })
    }
}
