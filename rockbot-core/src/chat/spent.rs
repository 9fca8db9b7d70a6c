//! Sums of usage and cost over several answers.

use std::iter::Sum;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::{ChatResponse, MicroUsd, Usage};

/// What some answers cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// How many answers.
    pub calls: u64,
    /// Their tokens.
    pub usage: Usage,
    /// Their price, as far as it is known.
    #[serde(skip_serializing_if = "is_nothing")]
    pub cost: MicroUsd,
    /// How many answers have no known price. When there are any, [`Spent::cost`] is not all of it.
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
    /// What one answer cost.
    pub fn on(answer: &ChatResponse) -> Self {
        Self {
            calls: 1,
            usage: answer.usage.unwrap_or_default(),
            cost: answer.cost.unwrap_or_default(),
            unpriced: u64::from(answer.cost.is_none()),
        }
    }

    /// The price of all answers; `None` when that of one of them is not known.
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
