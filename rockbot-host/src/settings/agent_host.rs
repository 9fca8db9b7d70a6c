//! The section `AgentHost`.

use std::num::NonZeroU32;

use rockbot_core::config::{Config, ConfigError};

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
}

impl Default for AgentHostSettings {
    fn default() -> Self {
        Self {
            max_tool_iterations: NonZeroU32::new(50).expect("50 is not zero"),
            max_completion_reprompts: 2,
            max_follow_up_passes: 1,
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
        })
    }
}
