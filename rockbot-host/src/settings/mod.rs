//! The settings of a host: the sections of its configuration, with their defaults.
//!
//! All names are the names of the original RockBot, so a configuration file that was written for
//! it is read without a warning. So are the defaults, with four exceptions:
//! `AgentHost.MaxCompletionReprompts` and `MaxFollowUpPasses` are 0 and not 1, since [the judges
//! do not pay](Evaluation) by default; `AgentHost.ToolResultMaxChars` is 0, no limit, and not
//! 8 000, since [long results are kept in chunks](crate::large_result);
//! `Feedback.SessionIdleThreshold` is 10 minutes and not 30.
//!
//! A program passes the settings to the builder:
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
//! # Sections of your own
//!
//! A host passes its [`Config`] to its subsystems, and each reads its own sections while it
//! [declares](rockbot_core::subsystem::Subsystem::declare). An invalid setting keeps the host
//! from being built, and is reported together with all other problems. So is a name that no part
//! has read, with the name that is nearest: whatever else the program reads must be read before
//! the host is built. [`Section::ignore`] leaves a section to another program.
//!
//! [`Section::ignore`]: rockbot_core::config::Section::ignore
//!
//! ```
//! use std::path::Path;
//! use std::time::Duration;
//! use async_trait::async_trait;
//! use rockbot_core::BoxError;
//! use rockbot_core::config::Config;
//! use rockbot_core::subsystem::{Declarations, Idle, Parts, Running, Subsystem};
//! use rockbot_core::testing::ScriptedModel;
//! use rockbot_host::AgentHost;
//! use rockbot_host::settings::HostSettings;
//!
//! /// Switches a lamp off after a while.
//! #[derive(Debug, Default)]
//! struct Lamp {
//!     off_after: Duration,
//! }
//!
//! #[async_trait]
//! impl Subsystem for Lamp {
//!     fn name(&self) -> &str {
//!         "lamp"
//!     }
//!
//!     fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
//!         // A host without settings has no configuration: then every default applies.
//!         let config = declarations.parts().get::<Config>().unwrap_or_default();
//!         self.off_after = config.section("Lamp")?.get_or("OffAfter", Duration::from_secs(600))?;
//!         Ok(())
//!     }
//!
//!     async fn start(self: Box<Self>, _: &Parts) -> Result<Box<dyn Running>, BoxError> {
//!         Ok(Box::new(Idle))
//!     }
//! }
//!
//! # let folder = tempfile::tempdir()?;
//! # let data = folder.path();
//! let config = Config::new().with_text("agent.json", r#"{ "Lamp": { "OffAfter": "soon" } }"#)?;
//! let settings = HostSettings::read(&config, data)?;
//! let builder = AgentHost::builder("butler").chat(ScriptedModel::new()).settings(&settings);
//! let error = builder.add(Lamp::default()).build().unwrap_err();
//! let expected = "the agent host cannot be built: \
//!     `lamp`: `Lamp.OffAfter` in `agent.json`: expected a time span such as `00:05:00` \
//!     (`[days.]hours:minutes[:seconds]`), found text";
//! assert_eq!(error.to_string(), expected);
//! # Ok::<_, BoxError>(())
//! ```
//!
//! # Sections
//!
//! | section | effect today |
//! |---|---|
//! | `AgentProfile` | `BasePath` is the data folder; it is the profile, too, when it has a `soul.md` |
//! | `AgentHost` | all settings: the [`Budget`] of a turn, the [`Evaluation`], the [`ContextEconomy`] and the [`Briefing`], see [`AgentHostSettings`], and the limits of tools, results, recall and hooks, see [`PolicySettings`] |
//! | `ModelBehaviors` | all settings, see [`behavior`](crate::behavior) |
//! | `LLM` | read by `rockbot-llm`: models, and the gateway before them |
//! | `ConversationMemory` | all settings: the window of a session, its time in memory, its folder, and the part of [tool calls](crate::HistoryOptions) |
//! | `Memory`, `Skills` | all settings, in a host with `Memory` of `rockbot-memory` |
//! | `Feedback` | `BasePath` and `Retention` in a host with `Memory`, the other times in one with `SessionEvaluation` of `rockbot-memory` |
//! | `ConversationLog` | `Enabled`, in an agent that is built from its configuration alone |
//! | `RabbitMq` | all settings, in a program that connects `RabbitMqBus` of `rockbot-bus` with them |
//! | `Pulsar` | all settings, in a program that connects `PulsarBus` of `rockbot-bus` with them |
//! | `RemoteTools` | all settings, in a host with [`RemoteTools`](crate::workers::RemoteTools) |
//! | `ServiceSearch` | all settings, in a host with `ServiceSearch` of `rockbot-remote`, which `Enabled = false` turns off |
//! | `ToolServices`, `WebTools`, `RestTools`, `FileTools`, `Egress` | all settings, in a host with these parts of `rockbot-tools` |
//! | `Mcp`, `McpProxy`, `McpServer` | all settings, in a host with `McpTools`, `McpToolProxy` and `McpToolServer` of `rockbot-mcp` |
//! | `Dream` | all settings, in a host with `Dreaming` of `rockbot-memory` |
//!
//! A section whose part a host does not have is a warning in the log, or an error if the
//! configuration describes the host [alone](HostSettings::deny_unread). Any other name in a file,
//! or in a variable with the prefix `ROCKBOT_`, is an error: most likely it is misspelt.
//! Variables without the prefix may belong to other programs.
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
//!
//! // The sections of parts are read by these; nothing is unknown.
//! assert!(config.check_unknown()?.iter().all(|key| key.is_unread));
//! # Ok::<_, rockbot_core::config::ConfigError>(())
//! ```

mod agent_host;
mod agent_profile;
mod conversation_memory;
mod data_dir;
mod policies;
mod sections;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use rockbot_core::config::{Config, ConfigError};
use rockbot_core::turn::Budget;

use crate::behavior::ModelBehaviors;
use crate::engine::Briefing;
use crate::turn::{ContextEconomy, Evaluation};

pub use self::agent_host::AgentHostSettings;
pub use self::agent_profile::{AgentProfileSettings, FolderChoice, PRODUCTION_FOLDER};
pub use self::conversation_memory::ConversationMemorySettings;
pub use self::data_dir::{DataDir, DataDirError};
pub use self::policies::PolicySettings;
pub(crate) use self::sections::{SECTIONS_OF_BROKERS, SECTIONS_OF_PARTS};

/// The settings of a host. The table in [`settings`](self) lists those that have an effect.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HostSettings {
    /// The section `AgentProfile`: the base folder and the files of the profile.
    pub agent_profile: AgentProfileSettings,
    /// The section `AgentHost`: the limits of a turn.
    pub agent_host: AgentHostSettings,
    /// Further limits of the section `AgentHost`: of tools, results, recall and hooks.
    pub policies: PolicySettings,
    /// The section `ConversationMemory`: the conversations.
    pub conversation_memory: ConversationMemorySettings,
    /// The section `ModelBehaviors` and the folder `model-behaviors` of the base folder: exceptions
    /// for particular models.
    pub model_behaviors: Arc<ModelBehaviors>,
    denies_unread: bool,
    config: Config,
}

impl HostSettings {
    /// Reads the settings of `config`.
    ///
    /// Relative folders are below `AgentProfile.BasePath`. When that is not set, it is `/data/agent`
    /// if that folder exists, else `data_folder`.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting, with its name, its source and the expected
    /// value.
    pub fn read(config: &Config, data_folder: &Path) -> Result<Self, ConfigError> {
        let agent_profile = AgentProfileSettings::read(config, data_folder)?;
        let base = agent_profile.base_path();
        for (name, _) in SECTIONS_OF_PARTS {
            // Known from now on, also where the host lacks the part.
            config.section(name)?;
        }
        Ok(Self {
            agent_host: AgentHostSettings::read(config)?,
            policies: PolicySettings::read(config)?,
            conversation_memory: ConversationMemorySettings::read(config, base)?,
            model_behaviors: Arc::new(ModelBehaviors::read(config)?.with_folder(base.join("model-behaviors"))),
            agent_profile,
            denies_unread: false,
            config: config.clone(),
        })
    }

    /// States that the configuration describes this host alone: a section that none of its parts
    /// reads keeps it from being built. Otherwise such a section is logged as a warning, since
    /// several programs may share a file.
    #[must_use]
    pub fn deny_unread(mut self) -> Self {
        self.denies_unread = true;
        self
    }

    /// Returns `true` if a section that no part reads keeps the host from being built.
    pub(crate) fn denies_unread(&self) -> bool {
        self.denies_unread
    }

    /// Returns the configuration, from which subsystems read their own sections.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the budget of a turn, from the section `AgentHost`.
    pub fn budget(&self) -> Budget {
        self.agent_host.budget()
    }

    /// Returns the limits of a conversation's length, from the section `AgentHost`.
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

    /// Returns the briefing before each message, from the section `AgentHost`.
    pub fn briefing(&self) -> Briefing {
        let AgentHostSettings {
            date_time,
            time_zone,
            working_method,
            ..
        } = &self.agent_host;
        Briefing {
            date_time: *date_time,
            working_method: *working_method,
            time_zone: time_zone.clone(),
            ..Briefing::none()
        }
    }

    /// Returns the limits of self-evaluation, from the section `AgentHost`.
    pub fn evaluation(&self) -> Evaluation {
        Evaluation {
            max_completion_reprompts: self.agent_host.max_completion_reprompts,
            max_follow_up_passes: self.agent_host.max_follow_up_passes,
        }
    }
}
