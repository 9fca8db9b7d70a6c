//! Prices of models, from a data file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rockbot_core::chat::{MicroUsd, Pricing, Usage};
use serde::Deserialize;
use thiserror::Error;

/// A table of prices per million tokens, by prefixes of model names.
///
/// The longest name in the table that the model's name begins with counts, with the vendor's
/// segment or without it: a date or a `-latest` may follow a name, another number may not. Names
/// are not case-sensitive.
///
/// The default table holds list prices of well-known models from memory, as of autumn 2025,
/// checked against no price list. Take them for a rough idea, and say your own where money
/// matters, such as under a [`Budget::max_cost`](rockbot_core::turn::Budget::max_cost): with
/// [`PriceTable::from_config`], [`PriceTable::from_file`] or [`PriceTable::with_price`]. A price
/// that a provider reports with its answer goes before the table.
///
/// ```
/// use rockbot_core::chat::{MicroUsd, Usage};
/// use rockbot_llm::PriceTable;
///
/// let prices = PriceTable::default()
///     .with(PriceTable::from_json(r#"{"models": {"our-model": {"input": 1, "cached": 0.1, "output": 4.5}}}"#)?);
/// let usage = Usage::new(1000, 100).with_cached(800);
/// // 200 x $1 + 800 x $0.10 + 100 x $4.50, per million
/// assert_eq!(prices.cost_of("vendor/our-model-2026-01-01", usage), Some(MicroUsd(730)));
/// assert_eq!(prices.cost_of("unknown", usage), None);
/// # Ok::<_, rockbot_llm::PriceTableError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceTable(BTreeMap<String, Price>);

/// The prices of one model for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Price {
    /// Price of input tokens.
    pub input: MicroUsd,
    /// Price of input tokens that the provider had cached.
    pub cached: MicroUsd,
    /// Price of output tokens, reasoning included.
    pub output: MicroUsd,
}

impl Price {
    /// Creates the prices of input and of output tokens. Cached input tokens cost as much as other
    /// ones.
    pub fn new(input: MicroUsd, output: MicroUsd) -> Self {
        Self {
            input,
            cached: input,
            output,
        }
    }

    /// Sets the price of input tokens that the provider had cached.
    #[must_use]
    pub fn with_cached(mut self, cached: MicroUsd) -> Self {
        self.cached = cached;
        self
    }
}

/// Prices that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PriceTableError {
    /// The file cannot be read.
    #[error("the prices in `{}` cannot be read: check the path and its permissions", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The text is no table of prices.
    #[error(
        "this is no table of prices ({cause}): write {{\"models\": {{\"name\": {{\"input\": 1, \"output\": 2}}}}}}"
    )]
    Malformed {
        /// Cause.
        cause: serde_json::Error,
    },
    /// A price is no amount.
    #[error("`{member}` of the model `{model}` must be from 0 to {MAX_DOLLARS} dollars per million tokens")]
    InvalidPrice {
        /// The model.
        model: String,
        /// The member.
        member: &'static str,
    },
}

/// The highest price, in dollars per million tokens.
const MAX_DOLLARS: f64 = 1_000_000.0;

#[derive(Deserialize)]
struct WireTable {
    models: BTreeMap<String, WirePrice>,
}

#[derive(Deserialize)]
struct WirePrice {
    input: f64,
    cached: Option<f64>,
    output: f64,
}

impl PriceTable {
    /// Reads `{"models": {"name": {"input": 1.25, "cached": 0.125, "output": 10}}}`: US dollars per
    /// million tokens. Without `cached`, cached tokens have the price of other tokens.
    ///
    /// # Errors
    ///
    /// Returns an error if `json` has another shape, or a price is negative or above a million dollars.
    pub fn from_json(json: &str) -> Result<Self, PriceTableError> {
        let json = json.trim_start_matches('\u{feff}');
        let table: WireTable = serde_json::from_str(json).map_err(|cause| PriceTableError::Malformed { cause })?;
        let prices = table.models.into_iter().map(|(name, price)| {
            let amount = |member, dollars: f64| {
                amount(dollars).ok_or_else(|| PriceTableError::InvalidPrice {
                    model: name.clone(),
                    member,
                })
            };
            let price = Price {
                input: amount("input", price.input)?,
                cached: amount("cached", price.cached.unwrap_or(price.input))?,
                output: amount("output", price.output)?,
            };
            Ok((name.to_lowercase(), price))
        });
        Ok(Self(prices.collect::<Result<_, _>>()?))
    }

    /// Reads a file, as [`PriceTable::from_json`] does.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or holds no prices.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, PriceTableError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| PriceTableError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Self::from_json(&text)
    }

    /// Merges the prices of `other`, which win where both have the same name.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Sets the price of `model`.
    #[must_use]
    pub fn with_price(mut self, model: &str, price: Price) -> Self {
        self.0.insert(model.to_lowercase(), price);
        self
    }

    /// Returns the price of `model`, if the table has one.
    pub fn price_of(&self, model: &str) -> Option<Price> {
        let model = model.to_lowercase();
        let without_vendor = model.rsplit_once('/').map(|(_, name)| name);
        self.longest(&model).or_else(|| self.longest(without_vendor?))
    }

    /// Returns the cost of `usage` of `model`, rounded up; `None` if the table has no price.
    pub fn cost_of(&self, model: &str, usage: Usage) -> Option<MicroUsd> {
        let price = self.price_of(model)?;
        let cached = usage.cached.min(usage.input);
        let parts = [
            (usage.input - cached, price.input),
            (cached, price.cached),
            (usage.output, price.output),
        ];
        // Less than 3 x 2^128 / 2^24: a price is below 2^40.
        let sum: u128 = parts
            .into_iter()
            .map(|(tokens, price)| u128::from(tokens) * u128::from(price.0))
            .sum();
        Some(MicroUsd(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)))
    }

    fn longest(&self, model: &str) -> Option<Price> {
        let ends = model.match_indices(['-', '@']).map(|(at, _)| at).chain([model.len()]);
        let ends: Vec<_> = ends.collect();
        ends.into_iter()
            .rev()
            .find_map(|end| self.0.get(&model[..end]).copied())
    }
}

/// Converts dollars to whole millionths; `None` outside of the range of prices.
fn amount(dollars: f64) -> Option<MicroUsd> {
    let dollars = Some(dollars).filter(|dollars| *dollars <= MAX_DOLLARS);
    dollars.and_then(|dollars| MicroUsd::from_dollars(dollars).ok())
}

impl Default for PriceTable {
    fn default() -> Self {
        Self::from_json(include_str!("prices.json")).expect("the table that comes with the crate is tested")
    }
}

impl Pricing for PriceTable {
    fn cost_of(&self, model: &str, usage: Usage) -> Option<MicroUsd> {
        self.cost_of(model, usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The input price of the model in dollars per million tokens.
    #[track_caller]
    fn check(model: &str, expected: Option<f64>) {
        let price = PriceTable::default().price_of(model);
        assert_eq!(price.map(|price| price.input.as_dollars()), expected, "{model}");
    }

    #[test]
    fn the_longest_beginning_of_a_name_counts() {
        check("gpt-4.1", Some(2.0));
        check("gpt-4.1-2025-04-14", Some(2.0));
        check("gpt-4.1-mini-2025-04-14", Some(0.4));
        check("openai/gpt-4.1-mini", Some(0.4));
        check("OpenAI/GPT-4o-latest", Some(2.5));
        check("azure/openai/o3-mini", Some(1.1));
        check("claude-sonnet-4-5-20250929", Some(3.0));
        check(crate::settings::DEFAULT_ANTHROPIC_MODEL, Some(3.0));
        check("claude-opus-4-5@20251101", Some(5.0));
        check("gpt-4", None);
        check("gpt-4.10", None);
        check("my-gpt-4.1", None);
        check("deepseek-chat:free", None);
        check("", None);
        check("/", None);
    }

    #[test]
    fn a_name_with_its_vendor_goes_before_one_without() {
        let json = r#"{"models":{"a/m":{"input":1,"output":1},"m":{"input":2,"output":2}}}"#;
        let prices = PriceTable::from_json(json).unwrap();
        let input = |model| prices.price_of(model).unwrap().input.as_dollars();
        assert_eq!((input("a/m-1"), input("b/m-1"), input("m")), (1.0, 2.0, 2.0));
    }

    #[test]
    fn costs_are_whole_and_rounded_up() {
        let json = r#"{"models":{"m":{"input":0.05,"cached":0.005,"output":0.4}}}"#;
        let prices = PriceTable::from_json(json).unwrap();
        let cost = |input, cached, output| {
            let usage = Usage::new(input, output).with_cached(cached);
            prices.cost_of("m", usage).unwrap().0
        };
        assert_eq!(cost(0, 0, 0), 0);
        assert_eq!(cost(1, 0, 0), 1);
        assert_eq!(cost(20, 0, 0), 1);
        assert_eq!(cost(21, 0, 0), 2);
        assert_eq!(cost(1_000_000, 1_000_000, 0), 5_000);
        // More cached than asked: what a provider says is not always right.
        assert_eq!(cost(100, 1_000_000, 1_000_000), 400_001);
        assert_eq!(cost(u64::MAX, 0, u64::MAX), 8_301_034_833_169_298_227);
    }

    #[test]
    fn an_error_says_what_is_wrong() {
        let check = |json: &str, expected: &str| {
            let error = PriceTable::from_json(json).unwrap_err().to_string();
            assert!(error.contains(expected), "{json}: {error}");
        };
        check("{}", "missing field `models`");
        check(r#"{"models":{"m":{"input":1}}}"#, "missing field `output`");
        check(
            r#"{"models":{"m":{"input":-1,"output":1}}}"#,
            "`input` of the model `m` must be from 0 to 1000000 dollars",
        );
        check(
            r#"{"models":{"m":{"input":1,"cached":1e9,"output":1}}}"#,
            "`cached` of the model `m`",
        );
        let missing = PriceTable::from_file("no/such/file.json").unwrap_err().to_string();
        assert!(missing.contains("no/such/file.json"), "{missing}");
    }
}
