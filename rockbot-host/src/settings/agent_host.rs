//! The section `AgentHost`.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use rockbot_core::chat::MicroUsd;
use rockbot_core::config::{Config, ConfigError, FromSetting, Section, Value};
use rockbot_core::turn::Budget;

/// How long a turn may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentHostSettings {
    /// `MaxToolIterations`: how many times a turn may ask the model. When they are used up one last answer without
    /// tools is asked for. Default 50.
    pub max_tool_iterations: NonZeroU32,
    /// `MaxCompletionReprompts`: how many times the model is sent back when its answer is not complete; 0 is never.
    /// Default 2.
    pub max_completion_reprompts: u32,
    /// `MaxFollowUpPasses`: how many times a complete answer may be followed up; 0 is never. Default 1.
    pub max_follow_up_passes: u32,
    /// `ToolResultMaxChars`: how long a tool's result may be before its middle is left out, in bytes; 0, the default, is
    /// as long as it may stay in one piece.
    pub tool_result_max_chars: usize,
    /// `ToolResultStashWatermarkTokens`: how many tokens a request may have, roughly, before something is left out of it;
    /// 0 is as many as the model takes. Default 30 000.
    pub tool_result_stash_watermark_tokens: u64,
    /// `ToolResultStashHeadTailRatio`, a number from 0 to 1: how much of what stays of a result is its beginning, in
    /// percent. Default 60.
    pub tool_result_head_percent: u8,
    /// `MaxToolCalls`: how many tool calls may run in a turn. Default 200.
    pub max_tool_calls: NonZeroU32,
    /// `MaxTurnTime`: how long a turn may work. Default 10 minutes.
    pub max_turn_time: Duration,
    /// `MaxTurnTokens`: how many tokens a turn may spend. Default: no limit.
    pub max_turn_tokens: Option<NonZeroU64>,
    /// `MaxTurnCost`: how much money a turn may spend, in US dollars. Default: no limit. The host needs to know the
    /// prices of its models then.
    pub max_turn_cost: Option<MicroUsd>,
}

impl Default for AgentHostSettings {
    fn default() -> Self {
        Self {
            max_tool_iterations: NonZeroU32::new(50).expect("50 is not zero"),
            max_completion_reprompts: 2,
            max_follow_up_passes: 1,
            tool_result_max_chars: 0,
            tool_result_stash_watermark_tokens: 30_000,
            tool_result_head_percent: 60,
            max_tool_calls: NonZeroU32::new(200).expect("200 is not zero"),
            max_turn_time: Budget::default().max_wall_clock,
            max_turn_tokens: None,
            max_turn_cost: None,
        }
    }
}

impl AgentHostSettings {
    pub(super) fn read(config: &Config) -> Result<Self, ConfigError> {
        let (section, default) = (config.section("AgentHost")?, Self::default());
        Ok(Self {
            max_tool_iterations: section.get_or("MaxToolIterations", default.max_tool_iterations)?,
            max_completion_reprompts: section.get_or("MaxCompletionReprompts", default.max_completion_reprompts)?,
            max_follow_up_passes: section.get_or("MaxFollowUpPasses", default.max_follow_up_passes)?,
            tool_result_max_chars: section.get_or("ToolResultMaxChars", default.tool_result_max_chars)?,
            tool_result_stash_watermark_tokens: section.get_or(
                "ToolResultStashWatermarkTokens",
                default.tool_result_stash_watermark_tokens,
            )?,
            tool_result_head_percent: section
                .get::<Percent>("ToolResultStashHeadTailRatio")?
                .map_or(default.tool_result_head_percent, |percent| percent.0),
            max_tool_calls: section.get_or("MaxToolCalls", default.max_tool_calls)?,
            max_turn_time: section.interval("MaxTurnTime", default.max_turn_time)?,
            max_turn_tokens: section.get("MaxTurnTokens")?,
            max_turn_cost: cost(&section, "MaxTurnCost")?,
        })
    }

    pub(super) fn budget(&self) -> Budget {
        Budget {
            max_model_calls: self.max_tool_iterations.get(),
            max_tool_calls: self.max_tool_calls.get(),
            max_wall_clock: self.max_turn_time,
            max_tokens: self.max_turn_tokens.map(NonZeroU64::get),
            max_cost: self.max_turn_cost,
        }
    }
}

/// With no money at all there would be no answers.
fn cost(section: &Section<'_>, name: &str) -> Result<Option<MicroUsd>, ConfigError> {
    let Some(setting) = section.setting(name) else {
        return Ok(None);
    };
    match setting.read()? {
        MicroUsd(0) => Err(setting.invalid("an amount above zero in US dollars such as `0.50`")),
        amount => Ok(Some(amount)),
    }
}

/// A share of the whole.
struct Percent(u8);

impl FromSetting for Percent {
    const EXPECTED: &'static str = "a number from 0 to 1";

    fn from_value(value: &Value) -> Option<Self> {
        let share: f64 = value.as_number()?.parse().ok()?;
        let percent = (0.0..=1.0).contains(&share).then(|| (share * 100.0).round())?;
        (0..=100).find(|whole| f64::from(*whole) == percent).map(Self)
    }
}
