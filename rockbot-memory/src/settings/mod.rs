//! The sections of a host's configuration that are about what its agent remembers.
//!
//! A host that is given its settings hands them on, and [`Memory`](crate::Memory) and
//! [`SessionEvaluation`](crate::SessionEvaluation) read them when the host is built; what a program says in code wins over
//! them. Relative folders are below the host's data folder. A host without one keeps in memory what is set to be there.
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
