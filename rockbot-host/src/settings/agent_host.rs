//! The section `AgentHost`.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use jiff::tz::TimeZone;
use rockbot_core::chat::MicroUsd;
use rockbot_core::config::{Config, ConfigError, FromSetting, Section, Value};
use rockbot_core::turn::Budget;

use crate::effects::EFFECT_WINDOW;
use crate::handlers::MAX_REPLY_MEDIA_BYTES;
use crate::live::BacklogLimits;
use crate::media_library::MEDIA_RETENTION;
use crate::workers::TOOL_LEASE;

/// The limits of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentHostSettings {
    /// `Name`: the name of an agent that is built from its configuration alone. Default `agent`.
    pub name: String,
    /// `MaxToolIterations`: maximum number of questions to the model in a turn. When they are used
    /// up, the model is asked for one last answer without tools. Default 50.
    pub max_tool_iterations: NonZeroU32,
    /// `MaxCompletionReprompts`: maximum number of times that an answer judged incomplete is sent
    /// back to the model. Default 0, which asks no judge; see
    /// [`Evaluation`](crate::turn::Evaluation) for the cost and the benefit of a judge.
    pub max_completion_reprompts: u32,
    /// `MaxFollowUpPasses`: maximum number of follow-ups after a complete answer. Default 0, which
    /// asks no judge.
    pub max_follow_up_passes: u32,
    /// `ToolResultMaxChars`: maximum length of a tool result in bytes; a longer result loses its
    /// middle. Default 0, which sets no limit here.
    pub tool_result_max_chars: usize,
    /// `ToolResultStashWatermarkTokens`: maximum length of a request in tokens, estimated; parts of
    /// a longer request are removed. 0 sets no limit but the model's context window. Default
    /// 30 000.
    pub tool_result_stash_watermark_tokens: u64,
    /// `ToolResultStashHeadTailRatio`, a number from 0 to 1: percentage of a shortened result that is
    /// its beginning. Default 60 (`0.6`).
    pub tool_result_head_percent: u8,
    /// `MaxToolCalls`: maximum number of tool calls in a turn. Default 200.
    pub max_tool_calls: NonZeroU32,
    /// `MaxTurnTime`: maximum working time of a turn, without the time that it waits for a user.
    /// Default 10 minutes.
    pub max_turn_time: Duration,
    /// `MaxTurnTokens`: maximum number of tokens of a turn, input and output. Default: no limit.
    pub max_turn_tokens: Option<NonZeroU64>,
    /// `MaxTurnCost`: maximum cost of a turn in US dollars. Default: no limit. With a limit the host
    /// needs the prices of its models, see
    /// [`AgentHostBuilder::prices`](crate::AgentHostBuilder::prices).
    pub max_turn_cost: Option<MicroUsd>,
    /// `MediaRetention`: retention of the images and files of messages. Default 30 days.
    pub media_retention: Duration,
    /// `MaxReplyMediaBytes`: maximum size of the images and files that a reply over a bus carries, in
    /// bytes. Default 512 KiB; see [`UserOptions`](crate::UserOptions::max_reply_media_bytes).
    pub max_reply_media_bytes: u64,
    /// `ToolLease`: validity of an announcement of tools, see
    /// [`MessageOptions`](crate::MessageOptions::tool_lease). Default 15 seconds.
    pub tool_lease: Duration,
    /// `EffectWindow`: retention of the records of mutating calls of other programs, so that none
    /// of them runs twice. Default 24 hours.
    pub effect_window: Duration,
    /// `TextCallFallback`: whether calls that a model wrote into its text are executed although it
    /// was offered native calls, see [`TextCallFallback`](crate::text_calling::TextCallFallback).
    /// Default `true`.
    pub text_call_fallback: bool,
    /// `SafeLinks`: whether an agent that is built from its configuration alone removes links that
    /// the user did not name from its answers, see [`SafeLinks`](crate::answer::SafeLinks). Default
    /// `true`.
    pub safe_links: bool,
    /// `ToolsOnDemand`: whether models see some tools only on demand, as their
    /// [`ToolExposure`](rockbot_core::tool::ToolExposure) states; `false` shows all in every request.
    /// Default `true`.
    pub tools_on_demand: bool,
    /// `DateTime`: whether the model is told the user's date and time, with the time zone, in one
    /// line before each message. Default `true`.
    pub date_time: bool,
    /// `TimeZone`: the time zone of users who have not set their own, an IANA name such as
    /// `Europe/Paris`. Default: the time zone of the system.
    pub time_zone: Option<String>,
    /// `WorkingMethod`: whether the model is told how many rounds of calls it has, and to plan them.
    /// Default `false`: it did not pay for all models, see `benches/README.md`.
    pub working_method: bool,
    /// `MaxMessages`, `MaxMessageBytes`, `MaxPrincipalMessages`, `MaxPrincipalMessageBytes`,
    /// `MaxSessionMessages`, `MaxSessionMessageBytes`: bounds of the messages that are accepted and
    /// not answered. Default 4 096 messages and 64 MiB in the host, 2 048 messages and 32 MiB of one
    /// principal, and 128 messages and 8 MiB that wait in a session.
    pub backlog: BacklogLimits,
}

impl Default for AgentHostSettings {
    fn default() -> Self {
        Self {
            name: "agent".to_owned(),
            max_tool_iterations: NonZeroU32::new(50).expect("50 is not zero"),
            max_completion_reprompts: 0,
            max_follow_up_passes: 0,
            tool_result_max_chars: 0,
            tool_result_stash_watermark_tokens: 30_000,
            tool_result_head_percent: 60,
            max_tool_calls: NonZeroU32::new(200).expect("200 is not zero"),
            max_turn_time: Budget::default().max_wall_clock,
            max_turn_tokens: None,
            max_turn_cost: None,
            media_retention: MEDIA_RETENTION,
            max_reply_media_bytes: MAX_REPLY_MEDIA_BYTES,
            tool_lease: TOOL_LEASE,
            effect_window: EFFECT_WINDOW,
            text_call_fallback: true,
            safe_links: true,
            tools_on_demand: true,
            date_time: true,
            time_zone: None,
            working_method: false,
            backlog: BacklogLimits::default(),
        }
    }
}

impl AgentHostSettings {
    pub(super) fn read(config: &Config) -> Result<Self, ConfigError> {
        let section = config.section("AgentHost")?;
        let default = Self::default();
        Ok(Self {
            name: section.get_or("Name", default.name)?,
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
            media_retention: section.interval("MediaRetention", default.media_retention)?,
            max_reply_media_bytes: section.get_or("MaxReplyMediaBytes", default.max_reply_media_bytes)?,
            tool_lease: section.interval("ToolLease", default.tool_lease)?,
            effect_window: section.interval("EffectWindow", default.effect_window)?,
            text_call_fallback: section.get_or("TextCallFallback", default.text_call_fallback)?,
            safe_links: section.get_or("SafeLinks", default.safe_links)?,
            tools_on_demand: section.get_or("ToolsOnDemand", default.tools_on_demand)?,
            date_time: section.get_or("DateTime", default.date_time)?,
            time_zone: time_zone(&section)?,
            working_method: section.get_or("WorkingMethod", default.working_method)?,
            backlog: backlog(&section)?,
        })
    }

    pub(super) fn budget(&self) -> Budget {
        Budget::default()
            .with_max_model_calls(self.max_tool_iterations.get())
            .with_max_tool_calls(self.max_tool_calls.get())
            .with_max_wall_clock(self.max_turn_time)
            .with_max_tokens(self.max_turn_tokens.map(NonZeroU64::get))
            .with_max_cost(self.max_turn_cost)
    }
}

/// Reads the name of a time zone that the system knows.
fn time_zone(section: &Section<'_>) -> Result<Option<String>, ConfigError> {
    let Some(setting) = section.setting("TimeZone") else {
        return Ok(None);
    };
    let name: String = setting.read()?;
    match TimeZone::get(&name) {
        Ok(_) => Ok(Some(name)),
        Err(_) => Err(setting.invalid("an IANA name of a time zone such as `Europe/Paris`")),
    }
}

/// Reads an amount above zero: with a limit of zero no turn could ask its model.
fn cost(section: &Section<'_>, name: &str) -> Result<Option<MicroUsd>, ConfigError> {
    let Some(setting) = section.setting(name) else {
        return Ok(None);
    };
    match setting.read()? {
        MicroUsd(0) => Err(setting.invalid("an amount above zero in US dollars such as `0.50`")),
        amount => Ok(Some(amount)),
    }
}

/// Reads bounds of at least one: with a bound of zero no message could be accepted.
fn backlog(section: &Section<'_>) -> Result<BacklogLimits, ConfigError> {
    let bound = |name: &str, default: usize| {
        let bound: Option<NonZeroU64> = section.get(name)?;
        Ok(bound.map_or(default, |bound| usize::try_from(bound.get()).unwrap_or(usize::MAX)))
    };
    let default = BacklogLimits::default();
    Ok(BacklogLimits::new()
        .with_max_messages(bound("MaxMessages", default.max_messages)?)
        .with_max_bytes(bound("MaxMessageBytes", default.max_bytes)?)
        .with_max_principal_messages(bound("MaxPrincipalMessages", default.max_principal_messages)?)
        .with_max_principal_bytes(bound("MaxPrincipalMessageBytes", default.max_principal_bytes)?)
        .with_max_session_messages(bound("MaxSessionMessages", default.max_session_messages)?)
        .with_max_session_bytes(bound("MaxSessionMessageBytes", default.max_session_bytes)?))
}

/// A share from 0 to 1 with at most two decimals, as whole percent.
struct Percent(u8);

impl FromSetting for Percent {
    const EXPECTED: &'static str = "a number from 0 to 1";

    fn from_value(value: &Value) -> Option<Self> {
        let share: f64 = value.as_number()?.parse().ok()?;
        let percent = (0.0..=1.0).contains(&share).then(|| (share * 100.0).round())?;
        (0..=100).find(|whole| f64::from(*whole) == percent).map(Self)
    }
}
