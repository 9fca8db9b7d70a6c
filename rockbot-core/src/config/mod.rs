//! Configuration: sections of settings from files and the environment. A kit for authors of
//! subsystems (feature `config`).
//!
//! A host hands the [`Config`] to its subsystems as a part, and each subsystem reads the
//! [`Section`]s of its own while it declares.
//!
//! * Files are JSON or TOML, by their ending. They hold sections, and sections hold settings and
//!   further sections.
//! * The environment sets the same with `__` between the names: `ROCKBOT_DREAM__INTERVAL`, or
//!   without a prefix `Dream__Interval`.
//! * The later source wins, setting by setting: the second file over the first, the environment
//!   over files, a variable with the prefix over one without.
//! * A list of sections is a section whose names are the positions, `0`, `1`, …, so that a
//!   variable can change one item.
//! * Names are not case-sensitive. `null` and an empty text count as unset.
//!
//! Every setting remembers where it was set, and every error names that place. No message and no
//! `Debug` output shows a value, because a value may be a key in the wrong place.
//!
//! ```
//! use std::time::Duration;
//! use rockbot_core::config::Config;
//!
//! let config = Config::new()
//!     .with_text("agent.toml", "[Dream]\nInterval = 04:00:00\nEnabled = true")?
//!     .with_variables([("ROCKBOT_DREAM__ENABLED", "no")]);
//! let dream = config.section("Dream")?;
//! assert_eq!(dream.get_or("Interval", Duration::ZERO)?, Duration::from_secs(4 * 3600));
//!
//! let error = dream.get_or("Enabled", true).unwrap_err();
//! assert_eq!(error.to_string(), "ROCKBOT_DREAM__ENABLED: expected `true` or `false`, found text");
//! # Ok::<_, rockbot_core::config::ConfigError>(())
//! ```

mod error;
mod file;
mod model_settings;
mod section;
mod setting;
#[cfg(test)]
mod tests;
mod time_span;
mod unknown;
mod value;
mod variables;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use self::error::{ConfigError, UnknownKey};
pub use self::section::Section;
pub use self::setting::{FromSetting, Setting};
pub use self::time_span::{format_time_span, parse_time_span};
pub use self::value::Value;

/// The names that lead to a setting, in lower case.
type Route = Vec<String>;

/// Settings from files and the environment, each with its origin.
///
/// It also tracks which settings were read, so that [`Config::unknown`] can report settings that
/// no part of the program knows. Reads through a clone count as well: clones share the tracking.
#[derive(Clone, Default)]
pub struct Config {
    settings: BTreeMap<Route, Setting>,
    /// All variables by their names in upper case, for those that belong to no section.
    variables: BTreeMap<String, Setting>,
    /// The number of layers added so far. A later layer overrides an earlier one.
    layers: u32,
    /// The settings that were read.
    known: Arc<Mutex<BTreeMap<Route, Known>>>,
}

impl Config {
    /// Creates a configuration without settings.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a configuration from the environment of this process.
    #[must_use]
    pub fn from_env() -> Self {
        Self::new().with_env()
    }

    /// Creates a configuration from the file at `path`, if one is given, and the environment of this
    /// process, which overrides the file.
    ///
    /// # Errors
    ///
    /// Returns an error as [`Config::with_file`] does.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let config = path.map_or_else(|| Ok(Self::new()), |path| Self::new().with_file(path))?;
        Ok(config.with_env())
    }

    /// Adds the file at `path`: JSON if its name ends with `.json`, TOML with `.toml`. Its maximum
    /// size is 1 MiB.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, has another extension, or has a syntax error.
    pub fn with_file(self, path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        self.with_bytes(path, &file::read(path)?)
    }

    /// Adds `text` as if it were a file of this name.
    ///
    /// # Errors
    ///
    /// Returns an error as [`Config::with_file`] does.
    pub fn with_text(self, name: impl AsRef<Path>, text: &str) -> Result<Self, ConfigError> {
        self.with_bytes(name.as_ref(), text.as_bytes())
    }

    /// Adds the environment of this process.
    #[must_use]
    pub fn with_env(self) -> Self {
        self.with_variables(std::env::vars_os())
    }

    /// Adds `variables` as if they were the environment. A value that is not UTF-8 is an error only
    /// when it is read.
    #[must_use]
    pub fn with_variables<K, V>(mut self, variables: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        variables::add(&mut self, variables.collect());
        self
    }

    /// Returns the section of this name. It may be empty.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting has this name.
    pub fn section(&self, name: &str) -> Result<Section<'_>, ConfigError> {
        Section::root(self).section(name)
    }

    /// Returns an environment variable that belongs to no section, such as `OPENAI_API_KEY`, or
    /// `None` if it is unset or empty.
    pub fn variable(&self, name: &str) -> Option<&Setting> {
        self.variables.get(&name.to_ascii_uppercase())
    }

    /// Returns the settings that are set and were not read so far. Call it when all sections were
    /// read; the subsystems of a host read theirs while it is built.
    ///
    /// A known section of which nothing was read counts as one [unread](UnknownKey::is_unread)
    /// setting: it belongs to a subsystem that the host does not have. Variables without the prefix
    /// count only if they name a section of which something was read; others belong to other
    /// programs, as does a section that is [ignored](Section::ignore).
    pub fn unknown(&self) -> Vec<UnknownKey> {
        unknown::below(self, &[])
    }

    /// Returns the warnings among [`Config::unknown`].
    ///
    /// # Errors
    ///
    /// Returns an error if one of them [is an error](UnknownKey::is_error).
    pub fn check_unknown(&self) -> Result<Vec<UnknownKey>, ConfigError> {
        unknown::check(self.unknown())
    }

    /// Returns the settings that were read so far, set or not, in the order of their names: what the
    /// parts of the program know.
    ///
    /// ```
    /// use rockbot_core::config::Config;
    ///
    /// let config = Config::new();
    /// config.section("Mail")?.get_or("Port", 587_u16)?;
    /// let known = config.known_settings();
    /// assert_eq!(known[0].name, "Mail.Port");
    /// assert_eq!(known[0].default.as_deref(), Some("587"));
    /// # Ok::<_, rockbot_core::config::ConfigError>(())
    /// ```
    pub fn known_settings(&self) -> Vec<KnownSetting> {
        let known = self.known().clone();
        // A section is no setting, unless it may be one: a list of texts, or of sections.
        let is_setting = |setting: &Known| setting.expected.is_some() || !setting.is_section;
        let read = known.iter().filter(|(_, setting)| is_setting(setting));
        let described = read.map(|(route, setting)| KnownSetting {
            name: self.full_name(route),
            expected: setting.expected,
            default: setting.default.clone(),
        });
        described.collect()
    }

    fn with_bytes(mut self, path: &Path, text: &[u8]) -> Result<Self, ConfigError> {
        file::add(&mut self, path, text)?;
        Ok(self)
    }

    /// Returns the full name of a setting, in the spelling of its readers as far as they know it:
    /// `LLM.Prices.model`.
    fn full_name(&self, route: &[String]) -> String {
        let known = self.known();
        let names = (1..=route.len()).map(|end| known.get(&route[..end]).map_or(&*route[end - 1], |known| &known.name));
        names.collect::<Vec<_>>().join(".")
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Route, Known>> {
        // An insertion either happened or did not, so a poisoned map is consistent.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A setting that a part of the program reads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownSetting {
    /// Full name in the spelling of its reader, such as `AgentHost.MaxToolIterations`. A position in
    /// a list is a number.
    pub name: String,
    /// Description of the accepted values, such as "a whole number of at least 1"; `None` if the
    /// reader judges the value by itself.
    pub expected: Option<&'static str>,
    /// Value that a reader takes where the setting is not set, as it is written in a file; `None` if
    /// the reader has none, or computes it.
    pub default: Option<String>,
}

/// A name that was read, and the values that it takes.
#[derive(Debug, Clone, Default)]
struct Known {
    /// The name in the spelling of its reader.
    name: String,
    /// The accepted values, where the reader says them.
    expected: Option<&'static str>,
    is_section: bool,
    default: Option<String>,
}

/// Shows the names and origins of the settings, never their values.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.settings.values()).finish()
    }
}
