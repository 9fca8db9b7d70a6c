//! A section, as those see it who read their settings from it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Config, ConfigError, FromSetting, Route, Setting, UnknownKey, Value, unknown};

/// The settings that stand under one name. Whatever is asked for counts as known from then on.
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

    /// The setting of this name, if it is set.
    pub fn setting(&self, name: &str) -> Option<&'a Setting> {
        self.config.settings.get(&self.know(name))
    }

    /// What the setting of this name holds, if it is set.
    ///
    /// # Errors
    ///
    /// Fails when it holds something else than a `T`.
    pub fn get<T: FromSetting>(&self, name: &str) -> Result<Option<T>, ConfigError> {
        self.setting(name).map(Setting::read).transpose()
    }

    /// What the setting of this name holds, or `default` when it is not set.
    ///
    /// # Errors
    ///
    /// Fails when it holds something else than a `T`.
    pub fn get_or<T: FromSetting>(&self, name: &str, default: T) -> Result<T, ConfigError> {
        Ok(self.get(name)?.unwrap_or(default))
    }

    /// The folder that the setting of this name holds, or `default` when it is not set. A relative one is below `base`.
    ///
    /// # Errors
    ///
    /// Fails when it holds no path.
    pub fn folder(&self, name: &str, default: &str, base: &Path) -> Result<PathBuf, ConfigError> {
        Ok(base.join(self.get_or(name, PathBuf::from(default))?))
    }

    /// The time span of this name, or `default` when it is not set: how long from one time that something is done to the
    /// next.
    ///
    /// # Errors
    ///
    /// Fails when it holds no time span, and when that is zero: it would be done all the time.
    pub fn interval(&self, name: &str, default: Duration) -> Result<Duration, ConfigError> {
        let Some(setting) = self.setting(name) else {
            return Ok(default);
        };
        match setting.read()? {
            Duration::ZERO => Err(setting.invalid("a time span above zero such as `00:05:00`")),
            interval => Ok(interval),
        }
    }

    /// The section of this name inside this one.
    ///
    /// # Errors
    ///
    /// Fails when something else than a section has this name.
    pub fn section(&self, name: &str) -> Result<Self, ConfigError> {
        let route = self.know(name);
        match self.config.settings.get(&route) {
            Some(setting) if !matches!(setting.value, Value::Section) => Err(setting.invalid("a section")),
            _ => Ok(Self {
                config: self.config,
                route,
            }),
        }
    }

    /// How a setting of this name is called, for messages that it is missing: `LLM.Prices.model.Input`.
    pub fn path(&self, name: &str) -> String {
        let known = self.config.known();
        let names = (1..=self.route.len()).map(|end| {
            let written = known.get(&self.route[..end]).or_else(|| self.route.get(end - 1));
            written.cloned().unwrap_or_default()
        });
        names.chain([name.to_owned()]).collect::<Vec<_>>().join(".")
    }

    /// The names that stand in this section, in lower case and in order.
    pub fn names(&self) -> Vec<String> {
        let below = self.config.settings.range(self.route.clone()..);
        let below = below.take_while(|(route, _)| route.starts_with(&self.route));
        let mut names: Vec<_> = below
            .filter_map(|(route, _)| route.get(self.route.len()).cloned())
            .collect();
        names.dedup();
        names
    }

    /// Whether anything is set in this section.
    pub fn is_set(&self) -> bool {
        let below = self.config.settings.range(self.route.clone()..);
        let mut below = below.take_while(|(route, _)| route.starts_with(&self.route));
        below.any(|(_, setting)| !matches!(setting.value, Value::Section))
    }

    /// What is set in this section and nobody asked for so far.
    pub fn unknown(&self) -> Vec<UnknownKey> {
        unknown::below(self.config, &self.route)
    }

    /// The warnings among [`Section::unknown`].
    ///
    /// # Errors
    ///
    /// Fails when one of them [is an error](UnknownKey::is_error).
    pub fn check_unknown(&self) -> Result<Vec<UnknownKey>, ConfigError> {
        unknown::check(self.unknown())
    }

    /// The route to this name, which is known from now on.
    fn know(&self, name: &str) -> Route {
        let mut route = self.route.clone();
        route.push(name.to_ascii_lowercase());
        self.config.known().insert(route.clone(), name.to_owned());
        route
    }
}

impl fmt::Debug for Section<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Section").field(&self.route.join(".")).finish()
    }
}
