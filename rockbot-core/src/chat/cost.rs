//! What answers cost, in money.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ChatResponse, Usage};

/// An amount of money in millionths of a US dollar. Sums stay at the greatest amount instead of an overflow.
///
/// ```
/// use rockbot_core::chat::MicroUsd;
///
/// assert_eq!(MicroUsd(1_250_400).to_string(), "$1.250400");
/// assert_eq!([MicroUsd(1), MicroUsd(2)].into_iter().sum::<MicroUsd>(), MicroUsd(3));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

impl MicroUsd {
    /// The amount in dollars, for figures that are only shown.
    pub fn as_dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl AddAssign for MicroUsd {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl Sum for MicroUsd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self(0), |mut sum, amount| {
            sum += amount;
            sum
        })
    }
}

impl fmt::Display for MicroUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

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

/// Knows what models cost.
pub trait Pricing: Send + Sync + 'static {
    /// What `usage` of `model` costs; `None` when nobody knows.
    fn cost_of(&self, model: &str, usage: Usage) -> Option<MicroUsd>;
}

/// Knows no price: only what providers report is known.
impl Pricing for () {
    fn cost_of(&self, _: &str, _: Usage) -> Option<MicroUsd> {
        None
    }
}

impl<P: Pricing + ?Sized> Pricing for Arc<P> {
    fn cost_of(&self, model: &str, usage: Usage) -> Option<MicroUsd> {
        (**self).cost_of(model, usage)
    }
}
