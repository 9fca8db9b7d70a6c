//! Configuration: sections of settings from files and the environment.
//!
//! * Files are JSON or TOML, by their ending. They hold sections, and sections hold settings and further sections.
//! * The environment sets the same with `__` between the names: `ROCKBOT_DREAM__INTERVAL`, or without a prefix
//!   `Dream__Interval`.
//! * What comes later wins, setting by setting: the second file over the first, the environment over files, a variable
//!   with the prefix over one without.
//! * Names are not case-sensitive. `null` and an empty text count as unset.
//!
//! Every setting remembers where it was set, and every error says so. No message and no `Debug` shows a value: it might
//! be a key in the wrong place.
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

/// Settings from files and the environment, each with the place where it was set.
///
/// It also keeps track of which settings somebody asked for, so that [`Config::unknown`] can tell which of those that
/// are set nobody knows. What is asked of a clone counts, too.
#[derive(Clone, Default)]
pub struct Config {
    settings: BTreeMap<Route, Setting>,
    /// All variables by their names in upper case, for those that are no settings of a section.
    variables: BTreeMap<String, Setting>,
    /// How often something was added; what was added later wins.
    layers: u32,
    /// What was asked for, as those who asked call it.
    known: Arc<Mutex<BTreeMap<Route, String>>>,
}

impl Config {
    /// Nothing is set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What the environment of this process sets.
    #[must_use]
    pub fn from_env() -> Self {
        Self::new().with_env()
    }

    /// What the file at `path` sets, if one is given, and the environment of this process.
    ///
    /// # Errors
    ///
    /// As [`Config::with_file`].
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let config = path.map_or_else(|| Ok(Self::new()), |path| Self::new().with_file(path))?;
        Ok(config.with_env())
    }

    /// Adds the file at `path`: JSON when its name ends with `.json`, TOML with `.toml`. It may be up to 1 MiB long.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be read, has another ending, or is not what its ending says.
    pub fn with_file(self, path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        self.with_bytes(path, &file::read(path)?)
    }

    /// Adds `text`, which stands for a file of this name.
    ///
    /// # Errors
    ///
    /// As [`Config::with_file`].
    pub fn with_text(self, name: impl AsRef<Path>, text: &str) -> Result<Self, ConfigError> {
        self.with_bytes(name.as_ref(), text.as_bytes())
    }

    /// Adds the environment of this process.
    #[must_use]
    pub fn with_env(self) -> Self {
        self.with_variables(std::env::vars_os())
    }

    /// Adds `variables`, which stand for the environment. One that cannot be used is an error when it is read.
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

    /// The section of this name, which may be empty.
    ///
    /// # Errors
    ///
    /// Fails when something else than a section has this name.
    pub fn section(&self, name: &str) -> Result<Section<'_>, ConfigError> {
        Section::root(self).section(name)
    }

    /// An environment variable that belongs to no section, such as `OPENAI_API_KEY`; `None` when it is empty.
    pub fn variable(&self, name: &str) -> Option<&Setting> {
        self.variables.get(&name.to_ascii_uppercase())
    }

    /// What is set and nobody asked for so far. To be called when everybody has read their sections: the subsystems of a
    /// host read theirs while it is built.
    ///
    /// A section that somebody knows and nobody reads belongs to a part that is not here: what is in it is left out.
    /// Of variables without the prefix only those count that name a known section: the others are somebody else's.
    pub fn unknown(&self) -> Vec<UnknownKey> {
        unknown::below(self, &[])
    }

    /// The warnings among [`Config::unknown`].
    ///
    /// # Errors
    ///
    /// Fails when one of them [is an error](UnknownKey::is_error).
    pub fn check_unknown(&self) -> Result<Vec<UnknownKey>, ConfigError> {
        unknown::check(self.unknown())
    }

    fn with_bytes(mut self, path: &Path, text: &[u8]) -> Result<Self, ConfigError> {
        file::add(&mut self, path, text)?;
        Ok(self)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Route, String>> {
        // An insertion either happened or did not.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows which settings there are, not what they are.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.settings.values()).finish()
    }
}
