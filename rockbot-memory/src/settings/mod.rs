//! The configuration sections of memory. That of dreams is [`DreamOptions`](crate::DreamOptions).
//!
//! [`Memory`](crate::Memory) and [`SessionEvaluation`](crate::SessionEvaluation) read them while
//! the host is built; options set in code take precedence. Relative folders are below the host's
//! data folder. Without a data folder, stores with a relative folder are kept in memory.
//!
//! ```
//! use std::path::Path;
//! use rockbot_core::config::Config;
//! use rockbot_memory::settings::SkillsSettings;
//!
//! let config = Config::new().with_text("agent.json", r#"{ "Skills": { "UsageBasePath": "/var/uses" } }"#)?;
//! let skills = SkillsSettings::from_config(&config)?;
//! assert_eq!(skills.base_path, Path::new("skills"));
//! assert_eq!(skills.usage_base_path, Path::new("/var/uses"));
//! # Ok::<_, rockbot_core::config::ConfigError>(())
//! ```

mod feedback;
mod memory;
mod skills;
#[cfg(test)]
mod tests;

pub use self::feedback::FeedbackSettings;
pub(crate) use self::feedback::{DEFAULT_IDLE_THRESHOLD, DEFAULT_POLL_INTERVAL};
pub use self::memory::MemorySettings;
pub use self::skills::SkillsSettings;
