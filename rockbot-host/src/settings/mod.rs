//! Settings of a host: the sections of its configuration, with their defaults.
//!
//! All names and defaults are those of the configuration reference, so a file written after it is read without a
//! warning. A host hands them to its builder:
//!
//! ```no_run
//! use std::path::Path;
//! use rockbot_core::config::Config;
//! use rockbot_host::AgentHost;
//! use rockbot_host::settings::HostSettings;
//!
//! let config = Config::load(Some(Path::new("agent.json")))?;
//! let settings = HostSettings::read(&config, Path::new("data"))?;
//! let builder = AgentHost::builder("agent").settings(&settings);
//! # Ok::<_, rockbot_core::config::ConfigError>(())
//! ```
//!
//! Not every setting has an effect yet:
//!
//! | section | effect today |
//! |---|---|
//! | `AgentProfile` | `BasePath` is the data folder; with a `soul.md` in it, also the profile |
//! | `AgentHost` | all of it: the [`Budget`] of a turn, the [`Evaluation`] and the [`ContextEconomy`], see [`AgentHostSettings`] |
//! | `ModelBehaviors` | all of it but `ScheduledTaskResultMode`, which is checked and waits for its part: see [`behavior`](crate::behavior) |
//! | `LLM` | read by `rockbot-llm`: models, and the gateway in front of them |
//! | `ConversationMemory` | how many entries a session keeps, how long it stays in memory, in which folder it lies |
//! | `Feedback` | the times of `SessionEvaluation` of `rockbot-memory`, for a program that adds it; no host adds it by itself |
//! | `RabbitMq`, `Memory`, `Skills`, `Dream` | checked, and wait for their part |
//!
//! ```
//! use std::path::Path;
//! use rockbot_core::config::Config;
//! use rockbot_host::settings::HostSettings;
//!
//! let config = Config::new().with_text("agent.json", r#"{
//!     "AgentProfile": { "BasePath": "/srv/agent" },
//!     "AgentHost": { "MaxToolIterations": 30, "MaxCompletionReprompts": 2, "MaxFollowUpPasses": 1 },
//!     "RabbitMq": { "HostName": "rabbitmq.cluster.local", "Port": 5672, "UserName": "rockbot", "Password": "..." },
//!     "LLM": {
//!         "Balanced": { "Endpoint": "https://openrouter.ai/api/v1", "ApiKey": "...", "ModelId": "anthropic/claude-haiku-4.5" },
//!         "Low": { "Endpoint": "https://openrouter.ai/api/v1", "ApiKey": "...", "ModelId": "google/gemini-flash-1.5-8b" },
//!         "High": { "Endpoint": "https://openrouter.ai/api/v1", "ApiKey": "...", "ModelId": "anthropic/claude-opus-4-6" }
//!     },
//!     "Memory": { "BasePath": "memory" },
//!     "Skills": { "BasePath": "skills", "UsageBasePath": "skill-usage" },
//!     "Dream": {
//!         "Enabled": true,
//!         "InitialDelay": "00:05:00",
//!         "Interval": "04:00:00",
//!         "TierRoutingReviewEnabled": true
//!     },
//!     "Feedback": { "BasePath": "feedback", "SessionIdleThreshold": "00:10:00", "PollInterval": "00:05:00" }
//! }"#)?;
//! let settings = HostSettings::read(&config, Path::new("data"))?;
//! assert_eq!(settings.budget().max_model_calls, 30);
//! assert_eq!(settings.agent_profile.base_path(), Path::new("/srv/agent"));
//! assert_eq!(settings.skills.usage_base_path, Path::new("/srv/agent/skill-usage"));
//!
//! // The section `LLM` is read by `rockbot-llm`; nothing else is unknown.
//! assert_eq!(config.check_unknown()?.len(), 1);
//! # Ok::<_, rockbot_core::config::ConfigError>(())
//! ```

mod agent_host;
mod agent_profile;
mod conversation_memory;
mod data_folder;
mod dream;
mod feedback;
mod memory;
mod rabbit_mq;
mod skills;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::config::{Config, ConfigError, Section};
use rockbot_core::turn::Budget;

use crate::behavior::ModelBehaviors;
use crate::turn::{ContextEconomy, Evaluation};

pub use self::agent_host::AgentHostSettings;
pub use self::agent_profile::{AgentProfileSettings, FolderChoice, PRODUCTION_FOLDER};
pub use self::conversation_memory::ConversationMemorySettings;
pub use self::data_folder::{DataFolder, DataFolderError};
pub use self::dream::DreamSettings;
pub use self::feedback::FeedbackSettings;
pub use self::memory::MemorySettings;
pub use self::rabbit_mq::RabbitMqSettings;
pub use self::skills::SkillsSettings;

/// The sections that are read and checked, and have no effect unless a program hands them on.
pub const WAITING_SECTIONS: [&str; 5] = ["RabbitMq", "Memory", "Skills", "Dream", "Feedback"];

/// The settings of a host. What stands in [`settings`](self) says which of them have an effect.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HostSettings {
    /// `AgentProfile`: where the agent lives.
    pub agent_profile: AgentProfileSettings,
    /// `AgentHost`: how long a turn may go on.
    pub agent_host: AgentHostSettings,
    /// `RabbitMq`: the message broker; `None` when the section is not there.
    pub rabbit_mq: Option<RabbitMqSettings>,
    /// `Memory`: what the agent remembers for long.
    pub memory: MemorySettings,
    /// `Skills`: what the agent learnt to do.
    pub skills: SkillsSettings,
    /// `Dream`: tidying up memories and skills.
    pub dream: DreamSettings,
    /// `Feedback`: how sessions went.
    pub feedback: FeedbackSettings,
    /// `ConversationMemory`: what was said.
    pub conversation_memory: ConversationMemorySettings,
    /// `ModelBehaviors`, and the folder `model-behaviors` of the base folder: how particular models are treated.
    pub model_behaviors: Arc<ModelBehaviors>,
}

impl HostSettings {
    /// The settings in `config`. Relative folders are below `AgentProfile.BasePath`; when that is not set it is
    /// `/data/agent`, if there is such a folder, else `data_folder`.
    ///
    /// # Errors
    ///
    /// Fails at the first setting that is not what it must be.
    pub fn read(config: &Config, data_folder: &Path) -> Result<Self, ConfigError> {
        let agent_profile = AgentProfileSettings::read(config, data_folder)?;
        let base = agent_profile.base_path();
        Ok(Self {
            agent_host: AgentHostSettings::read(config)?,
            rabbit_mq: RabbitMqSettings::read(config)?,
            memory: MemorySettings::read(config, base)?,
            skills: SkillsSettings::read(config, base)?,
            dream: DreamSettings::read(config)?,
            feedback: FeedbackSettings::read(config, base)?,
            conversation_memory: ConversationMemorySettings::read(config, base)?,
            model_behaviors: Arc::new(ModelBehaviors::read(config)?.with_folder(base.join("model-behaviors"))),
            agent_profile,
        })
    }

    /// What a turn may spend, as the section `AgentHost` says.
    pub fn budget(&self) -> Budget {
        self.agent_host.budget()
    }

    /// When something of a conversation is left out.
    pub fn context_economy(&self) -> ContextEconomy {
        let AgentHostSettings {
            tool_result_max_chars: max_len,
            tool_result_stash_watermark_tokens: watermark,
            tool_result_head_percent: head_percent,
            ..
        } = self.agent_host;
        ContextEconomy {
            max_result_len: (max_len > 0).then_some(max_len),
            watermark: (watermark > 0).then_some(watermark),
            head_percent,
            ..ContextEconomy::default()
        }
    }

    /// How often a turn may look at its own answer again.
    pub fn evaluation(&self) -> Evaluation {
        Evaluation {
            max_completion_reprompts: self.agent_host.max_completion_reprompts,
            max_follow_up_passes: self.agent_host.max_follow_up_passes,
        }
    }
}

/// The time span of this name, which must not be zero: something is done again and again after it.
fn interval(section: &Section<'_>, name: &str, default: Duration) -> Result<Duration, ConfigError> {
    let Some(setting) = section.setting(name) else {
        return Ok(default);
    };
    match setting.read()? {
        Duration::ZERO => Err(setting.invalid("a time span above zero such as `00:05:00`")),
        interval => Ok(interval),
    }
}
