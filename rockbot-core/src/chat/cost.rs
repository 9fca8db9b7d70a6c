//! Money, and the prices of models.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Usage;

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
    /// Returns the amount in dollars, for display only.
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

/// A source of model prices.
pub trait Pricing: Send + Sync + 'static {
    /// Returns the cost of `usage` of `model`, or `None` if its price is unknown.
    fn cost_of(&self, model: &str, usage: Usage) -> Option<MicroUsd>;
}

/// The empty price list: only costs that providers report are known.
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
