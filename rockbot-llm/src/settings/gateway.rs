//! Settings of the gateway: limits, times, prices.

use std::num::NonZeroU32;
use std::path::PathBuf;

use rockbot_core::chat::MicroUsd;
use rockbot_core::config::{Config, ConfigError, Section};

use crate::error::LlmConfigError;
use crate::limits::{PermitLimits, TimeLimit};
use crate::pricing::{Price, PriceTable};
use crate::retry::RetryPolicy;

/// The settings of the gateway to all models: `LLM.Gateway`, `LLM.Prices` and `LLM.PriceFile`.
///
/// ```
/// use rockbot_core::config::Config;
/// use rockbot_llm::GatewaySettings;
///
/// let config = Config::new().with_text("agent.json", r#"{ "LLM": {
///     "Gateway": { "Permits": { "Total": 1 }, "CallTimeout": "00:01:30" },
///     "Prices": { "our-model": { "Input": 1, "Cached": 0.1, "Output": 4.5 } }
/// } }"#)?;
/// let settings = GatewaySettings::from_config(&config)?;
/// assert_eq!(settings.permits.total, 1);
/// assert_eq!(settings.prices.price_of("our-model").expect("it is set").output.as_dollars(), 4.5);
/// # Ok::<_, rockbot_llm::LlmConfigError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GatewaySettings {
    /// Limits on running and waiting calls.
    pub permits: PermitLimits,
    /// Retry policy. The setting `Retries` counts the attempts after the first.
    pub retry: RetryPolicy,
    /// Time limits of a call.
    pub time_limit: TimeLimit,
    /// Prices of models.
    pub prices: PriceTable,
}

impl GatewaySettings {
    /// Reads the settings in the section `LLM` of `config`.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting has another type or range, or if the file of prices cannot be
    /// read.
    pub fn from_config(config: &Config) -> Result<Self, LlmConfigError> {
        Self::read(&config.section("LLM")?)
    }

    pub(super) fn read(llm: &Section<'_>) -> Result<Self, LlmConfigError> {
        let gateway = llm.section("Gateway")?;
        Ok(Self {
            permits: permits(&gateway)?,
            retry: RetryPolicy::default().with_max_attempts(max_attempts(&gateway)?),
            time_limit: time_limit(&gateway)?,
            prices: prices(llm)?,
        })
    }
}

impl PriceTable {
    /// Creates the built-in table with the prices of the section `LLM` of `config`, see
    /// [`settings`](crate::settings).
    ///
    /// # Errors
    ///
    /// Returns an error if a setting is no price, or if the file of prices cannot be used.
    pub fn from_config(config: &Config) -> Result<Self, LlmConfigError> {
        Ok(GatewaySettings::from_config(config)?.prices)
    }
}

/// Reads `Retries`, which counts the attempts after the first.
fn max_attempts(gateway: &Section<'_>) -> Result<u32, ConfigError> {
    let default = RetryPolicy::default().max_attempts;
    let retries = gateway.get::<u32>("Retries")?;
    Ok(retries.map_or(default, |retries| retries.saturating_add(1)))
}

fn permits(gateway: &Section<'_>) -> Result<PermitLimits, ConfigError> {
    let section = gateway.section("Permits")?;
    let default = PermitLimits::default();
    let permits = |name: &str, default: usize| {
        let count: Option<NonZeroU32> = section.get(name)?;
        Ok::<_, ConfigError>(count.map_or(default, |count| count.get() as usize))
    };
    Ok(PermitLimits {
        low: permits("Low", default.low)?,
        balanced: permits("Balanced", default.balanced)?,
        high: permits("High", default.high)?,
        total: permits("Total", default.total)?,
        max_waiting: gateway.get_or("MaxWaiting", default.max_waiting)?,
        max_wait: gateway.get_or("MaxWait", default.max_wait)?,
        ..default
    })
}

fn time_limit(gateway: &Section<'_>) -> Result<TimeLimit, ConfigError> {
    let default = TimeLimit::default();
    Ok(TimeLimit {
        call: gateway.get_or("CallTimeout", default.call)?,
        first: gateway.get_or("FirstPieceTimeout", default.first)?,
        pause: gateway.get_or("PauseTimeout", default.pause)?,
    })
}

fn prices(llm: &Section<'_>) -> Result<PriceTable, LlmConfigError> {
    let mut prices = PriceTable::default();
    if let Some(path) = llm.get::<PathBuf>("PriceFile")? {
        prices = prices.with(PriceTable::from_file(path)?);
    }
    let all = llm.section("Prices")?;
    for model in all.names() {
        prices = prices.with_price(&model, price(&all.section(&model)?)?);
    }
    Ok(prices)
}

/// Reads a price. Without `Cached`, cached tokens have the price of other tokens.
fn price(section: &Section<'_>) -> Result<Price, LlmConfigError> {
    let needed = |name: &'static str| {
        let amount: Option<MicroUsd> = section.get(name)?;
        amount.ok_or_else(|| LlmConfigError::NoPrice {
            setting: section.path(name),
        })
    };
    let input = needed("Input")?;
    Ok(Price {
        input,
        cached: section.get_or("Cached", input)?,
        output: needed("Output")?,
    })
}
