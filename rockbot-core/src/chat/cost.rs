//! Money, and the prices of models.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Usage;

/// An amount of money in millionths of a US dollar. Sums stay at the greatest amount instead of
/// an overflow.
///
/// ```
/// use rockbot_core::chat::MicroUsd;
///
/// assert_eq!(MicroUsd::from_dollars(1.2504)?.to_string(), "$1.250400");
/// assert_eq!([MicroUsd(1), MicroUsd(2)].into_iter().sum::<MicroUsd>(), MicroUsd(3));
/// # Ok::<(), rockbot_core::chat::InvalidAmount>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

/// A number that is no amount of dollars.
///
/// An error and not `None`, since a limit that takes an `Option` would be off then.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{dollars} is no amount of dollars: use a number from 0 to {MAX_DOLLARS:e}")]
#[non_exhaustive]
pub struct InvalidAmount {
    /// Number that was given.
    pub dollars: f64,
}

/// Maximum amount that is converted, in dollars.
const MAX_DOLLARS: f64 = 1e12;

impl MicroUsd {
    /// Creates an amount from dollars, such as `0.5`, rounded to the nearest millionth.
    ///
    /// # Errors
    ///
    /// Returns an error if `dollars` is negative, above 1 000 000 000 000, or not a number.
    pub fn from_dollars(dollars: f64) -> Result<Self, InvalidAmount> {
        if (0.0..=MAX_DOLLARS).contains(&dollars) {
            Ok(Self((dollars * 1e6).round() as u64))
        } else {
            Err(InvalidAmount { dollars })
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_become_the_nearest_millionth_and_what_is_no_amount_is_refused() {
        for (dollars, expected) in [
            (0.0, 0),
            (-0.0, 0),
            (0.1, 100_000),
            (0.29, 290_000),
            (0.000_000_6, 1),
            (1e12, 10_u64.pow(18)),
        ] {
            assert_eq!(MicroUsd::from_dollars(dollars), Ok(MicroUsd(expected)), "{dollars}");
        }
        for dollars in [-0.01, 1.1e12, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let error = MicroUsd::from_dollars(dollars).unwrap_err();
            assert!(error.to_string().contains("is no amount of dollars"), "{error}");
        }
    }
}
