//! A section of settings, for the subsystem that reads it.
//!
//! A list of sections in the settings is a section of positions, as in .NET:
//! `RestTools__Endpoints__0__Name` changes one item.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Config, ConfigError, FromSetting, Known, Route, Setting, UnknownKey, Value, unknown};

/// The settings under one name. Reading a setting marks its name as known.
///
/// ```
/// use rockbot_core::config::Config;
///
/// let config = Config::new().with_text("agent.json", r#"{ "Mail": { "Port": 25, "Ports": 26 } }"#)?;
/// let mail = config.section("Mail")?;
/// assert_eq!(mail.get_or("Port", 587_u16)?, 25);
/// assert_eq!(mail.unknown()[0].meant.as_deref(), Some("Port"));
/// # Ok::<_, rockbot_core::config::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Section<'a> {
    config: &'a Config,
    route: Route,
}

impl<'a> Section<'a> {
    pub(super) fn root(config: &'a Config) -> Self {
        let route = Vec::new();
        Self { config, route }
    }

    /// Returns the setting of this name, if it is set.
    pub fn setting(&self, name: &str) -> Option<&'a Setting> {
        self.config.settings.get(&self.know(name))
    }

    /// Returns the value of the setting of this name, if it is set.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is not a `T`.
    pub fn get<T: FromSetting>(&self, name: &str) -> Result<Option<T>, ConfigError> {
        self.setting_of::<T>(name, None).map(Setting::read).transpose()
    }

    /// Returns the value of the setting of this name, or `default` if it is not set.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is not a `T`.
    pub fn get_or<T: FromSetting>(&self, name: &str, default: T) -> Result<T, ConfigError> {
        let setting = self.setting_of(name, Some(&default));
        Ok(setting.map(Setting::read).transpose()?.unwrap_or(default))
    }

    /// Returns the folder in the setting of this name, or `default` if it is not set. A relative path
    /// is below `base`.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is not a path.
    pub fn folder(&self, name: &str, default: &str, base: &Path) -> Result<PathBuf, ConfigError> {
        Ok(base.join(self.get_or(name, PathBuf::from(default))?))
    }

    /// Returns the interval in the setting of this name, or `default` if it is not set.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is not a time span, or is zero: the periodic work would run
    /// without pause.
    pub fn interval(&self, name: &str, default: Duration) -> Result<Duration, ConfigError> {
        let Some(setting) = self.setting_of(name, Some(&default)) else {
            return Ok(default);
        };
        match setting.read()? {
            Duration::ZERO => {
                Err(setting.invalid("a time span above zero such as `00:05:00` (`[days.]hours:minutes[:seconds]`)"))
            }
            interval => Ok(interval),
        }
    }

    /// Returns the section of this name inside this section. A list of sections is a section whose
    /// names are the positions.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting has this name.
    pub fn section(&self, name: &str) -> Result<Self, ConfigError> {
        let route = self.know(name);
        self.config.known().entry(route.clone()).or_default().is_section = true;
        match self.config.settings.get(&route) {
            Some(setting) if !setting.value.is_section() => Err(setting.invalid("a section")),
            _ => Ok(Self {
                config: self.config,
                route,
            }),
        }
    }

    /// Returns the sections of a list of sections of this name, in order.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting has this name.
    ///
    /// ```
    /// use rockbot_core::config::Config;
    ///
    /// let config = Config::new().with_text("app.toml", "[[Web.Users]]\nName = 'ann'\n[[Web.Users]]\nName = 'bob'")?;
    /// let users = config.section("Web")?.items("Users")?;
    /// assert_eq!(users[1].get::<String>("Name")?.as_deref(), Some("bob"));
    /// # Ok::<_, rockbot_core::config::ConfigError>(())
    /// ```
    pub fn items(&self, name: &str) -> Result<Vec<Self>, ConfigError> {
        let list = self.section(name)?;
        let mut names = list.names();
        names.sort_by_key(|name| name.parse::<usize>().unwrap_or(usize::MAX));
        names.iter().map(|name| list.section(name)).collect()
    }

    /// Returns the texts of a list, or of one text with commas, as in a variable of the environment;
    /// `None` if nothing is set.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is neither.
    ///
    /// ```
    /// use rockbot_core::config::Config;
    ///
    /// let config = Config::new().with_text("app.toml", "Web.Names = 'ann, bob'")?;
    /// assert_eq!(config.section("Web")?.texts("Names")?, Some(vec!["ann".to_owned(), "bob".to_owned()]));
    /// # Ok::<_, rockbot_core::config::ConfigError>(())
    /// ```
    pub fn texts(&self, name: &str) -> Result<Option<Vec<String>>, ConfigError> {
        let Some(setting) = self.setting_of::<Vec<String>>(name, None) else {
            return Ok(None);
        };
        Ok(Some(match setting.read::<String>() {
            Ok(text) => text.split(',').map(|name| name.trim().to_owned()).collect(),
            Err(_) => setting.read()?,
        }))
    }

    /// Creates the error that a setting of this section is missing, which is `expected`, such as "the
    /// name of a user".
    pub fn missing(&self, name: &str, expected: &'static str) -> ConfigError {
        ConfigError::Invalid {
            setting: self.path(name),
            expected: expected.into(),
            found: "nothing",
        }
    }

    /// Returns the full name of a setting of this section, for messages that it is missing:
    /// `LLM.Prices.model.Input`.
    pub fn path(&self, name: &str) -> String {
        match self.config.full_name(&self.route) {
            section if section.is_empty() => name.to_owned(),
            section => format!("{section}.{name}"),
        }
    }

    /// Returns the names in this section, in lower case and sorted.
    pub fn names(&self) -> Vec<String> {
        let below = self.config.settings.range(self.route.clone()..);
        let below = below.take_while(|(route, _)| route.starts_with(&self.route));
        let mut names: Vec<_> = below
            .filter_map(|(route, _)| route.get(self.route.len()).cloned())
            .collect();
        names.dedup();
        names
    }

    /// Returns `true` if anything is set in this section.
    pub fn is_set(&self) -> bool {
        let below = self.config.settings.range(self.route.clone()..);
        let mut below = below.take_while(|(route, _)| route.starts_with(&self.route));
        below.any(|(_, setting)| !matches!(setting.value, Value::Section))
    }

    /// Leaves the settings in this section to another program, or to a part that is turned off: none
    /// of them is [unknown](Config::unknown).
    ///
    /// ```
    /// use rockbot_core::config::Config;
    ///
    /// let config = Config::new().with_text("app.json", r#"{ "Logging": { "Level": "info" } }"#)?;
    /// config.section("Logging")?.ignore();
    /// assert_eq!(config.unknown(), []);
    /// # Ok::<_, rockbot_core::config::ConfigError>(())
    /// ```
    pub fn ignore(&self) {
        let mut known = self.config.known();
        let below = self.config.settings.range(self.route.clone()..);
        for (route, _) in below.take_while(|(route, _)| route.starts_with(&self.route)) {
            let name = route.last().cloned().unwrap_or_default();
            known.entry(route.clone()).or_insert(Known {
                name,
                ..Known::default()
            });
        }
    }

    /// Returns the settings in this section that are set and were not read so far.
    pub fn unknown(&self) -> Vec<UnknownKey> {
        unknown::below(self.config, &self.route)
    }

    /// Returns the warnings among [`Section::unknown`].
    ///
    /// # Errors
    ///
    /// Returns an error if a warning among them [is an error](UnknownKey::is_error).
    pub fn check_unknown(&self) -> Result<Vec<UnknownKey>, ConfigError> {
        unknown::check(self.unknown())
    }

    /// Returns the setting of this name, if it is set, and notes which values it takes.
    fn setting_of<T: FromSetting>(&self, name: &str, default: Option<&T>) -> Option<&'a Setting> {
        let route = self.know(name);
        if let Some(known) = self.config.known().get_mut(&route) {
            known.expected = Some(T::EXPECTED);
            known.default = default.and_then(T::written).or(known.default.take());
        }
        self.config.settings.get(&route)
    }

    /// Returns the route of this name and marks it as known.
    fn know(&self, name: &str) -> Route {
        let mut route = self.route.clone();
        route.push(name.to_ascii_lowercase());
        name.clone_into(&mut self.config.known().entry(route.clone()).or_default().name);
        route
    }
}

impl fmt::Debug for Section<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Section").field(&self.route.join(".")).finish()
    }
}
