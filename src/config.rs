//! Configuration: settings from JSON and TOML files and from the environment.
//!
//! [`Config`] merges a file with the environment, which wins. Each part reads its own sections:
//! [`HostSettings`] the sections of the host, [`LlmSettings`] the sections of the models; a
//! program reads its own before it builds the host, which refuses names that no part has read and
//! suggests the nearest. Errors name the file and the key, never the value, since a value may be
//! a secret.
//!
//! ```
//! use rockbot::config::Config;
//!
//! let config = Config::new().with_text("agent.json", r#"{ "Billing": { "MaxInvoices": 5 } }"#)?;
//! assert_eq!(config.section("Billing")?.get::<u32>("MaxInvoices")?, Some(5));
//! # Ok::<(), rockbot::config::ConfigError>(())
//! ```
//!
#![doc = include_str!("../docs/configuration.md")]
#![doc = ""]
#![doc = include_str!("../docs/operations.md")]

#[doc(inline)]
pub use rockbot_core::config::{Config, ConfigError, KnownSetting, Section, Value};
#[doc(inline)]
pub use rockbot_host::settings::{AgentProfileSettings, DataDir, FolderChoice, HostSettings};
#[cfg(feature = "llm")]
#[cfg_attr(docsrs, doc(cfg(feature = "llm")))]
#[doc(inline)]
pub use rockbot_llm::{GatewaySettings, LlmConfigError, LlmSettings, Provider, TierSettings};
