//! A setting: its value and its origin.

use std::borrow::Cow;
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{ConfigError, Value, parse_time_span};
use crate::Secret;
use crate::chat::MicroUsd;

/// A setting with its origin. `Display` and `Debug` show its name and origin, never its value.
#[derive(Clone)]
pub struct Setting {
    pub(super) value: Value,
    pub(super) origin: Origin,
    pub(super) layer: u32,
}

/// The origin of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// A file, with the names in the spelling of the file.
    File { key: String, path: Arc<Path> },
    /// An environment variable. With the prefix it can only be meant for this program.
    Variable { name: String, is_prefixed: bool },
}

impl Setting {
    /// Returns the value as a `T`.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is not a `T`.
    pub fn read<T: FromSetting>(&self) -> Result<T, ConfigError> {
        T::from_value(&self.value).ok_or_else(|| self.invalid(T::EXPECTED))
    }

    /// Creates the error that this setting must be `expected`, such as "a port above 1023".
    pub fn invalid(&self, expected: impl Into<Cow<'static, str>>) -> ConfigError {
        ConfigError::Invalid {
            setting: self.to_string(),
            expected: expected.into(),
            found: self.value.kind(),
        }
    }

    /// Returns the last part of its name, as it is written where it is set.
    ///
    /// Names are not case-sensitive; call it where a name means something outside, such as the name
    /// of a variable.
    pub fn name(&self) -> &str {
        let last = match &self.origin {
            Origin::File { key, .. } => key.rsplit('.').next(),
            Origin::Variable { name, .. } => name.rsplit("__").next(),
        };
        last.unwrap_or_default()
    }

    /// Returns `true` if an environment variable set it rather than a file.
    pub fn is_variable(&self) -> bool {
        matches!(self.origin, Origin::Variable { .. })
    }

    /// Returns `true` if the same file set it and `other`.
    pub fn is_beside(&self, other: &Self) -> bool {
        !self.is_variable() && self.layer == other.layer
    }

    /// Returns `true` if it was set in a later layer than `other`, and so overrides it where both
    /// mean the same.
    pub fn is_later_than(&self, other: &Self) -> bool {
        self.layer > other.layer
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::File { key, path } => write!(f, "`{key}` in `{}`", path.display()),
            Origin::Variable { name, .. } => f.write_str(name),
        }
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({})", self.value.kind())
    }
}

/// A type that a setting can be parsed as. Implement it for enumerations and units of your own.
///
/// ```
/// use rockbot_core::config::{Config, FromSetting, Value};
///
/// #[derive(Debug, PartialEq)]
/// enum Colour { Red, Green }
///
/// impl FromSetting for Colour {
///     const EXPECTED: &'static str = "`red` or `green`";
///
///     fn from_value(value: &Value) -> Option<Self> {
///         match value.as_text()? {
///             "red" => Some(Self::Red),
///             "green" => Some(Self::Green),
///             _ => None,
///         }
///     }
/// }
///
/// let config = Config::new().with_text("lamp.json", r#"{ "Lamp": { "Colour": "blue" } }"#)?;
/// let error = config.section("Lamp")?.get::<Colour>("Colour").unwrap_err();
/// assert_eq!(error.to_string(), "`Lamp.Colour` in `lamp.json`: expected `red` or `green`, found text");
/// # Ok::<_, rockbot_core::config::ConfigError>(())
/// ```
pub trait FromSetting: Sized {
    /// A description of the accepted values, for messages: "a whole number from 0 to 65535".
    const EXPECTED: &'static str;

    /// Converts the value, or returns `None` if it is not acceptable.
    fn from_value(value: &Value) -> Option<Self>;

    /// Returns the value as it is written in a settings file, for lists of settings. Default `None`:
    /// it is not shown.
    fn written(&self) -> Option<String> {
        None
    }
}

impl FromSetting for String {
    const EXPECTED: &'static str = "text";

    fn from_value(value: &Value) -> Option<Self> {
        value.as_text().map(Self::from)
    }

    fn written(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }
}

impl FromSetting for Secret {
    const EXPECTED: &'static str = "text";

    fn from_value(value: &Value) -> Option<Self> {
        value.as_text().map(Self::from)
    }
}

impl FromSetting for PathBuf {
    const EXPECTED: &'static str = "a path";

    fn from_value(value: &Value) -> Option<Self> {
        value.as_text().map(Self::from)
    }

    fn written(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }
}

impl FromSetting for bool {
    const EXPECTED: &'static str = "`true` or `false`";

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Flag(flag) => Some(*flag),
            _ => value.as_text()?.to_ascii_lowercase().parse().ok(),
        }
    }

    fn written(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// Parses `hh:mm:ss`, with optional days before and an optional fraction after; see
/// [`parse_time_span`].
impl FromSetting for Duration {
    const EXPECTED: &'static str = "a time span such as `00:05:00` (`[days.]hours:minutes[:seconds]`)";

    fn from_value(value: &Value) -> Option<Self> {
        parse_time_span(value.as_text()?)
    }

    fn written(&self) -> Option<String> {
        let seconds = self.as_secs();
        let days = match seconds / 86_400 {
            0 => String::new(),
            days => format!("{days}."),
        };
        let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
        let fraction = match self.subsec_millis() {
            0 => String::new(),
            millis => format!(".{millis:03}"),
        };
        Some(format!(
            "\"{days}{hours:02}:{minutes:02}:{:02}{fraction}\"",
            seconds % 60
        ))
    }
}

/// Parses an amount in US dollars.
impl FromSetting for MicroUsd {
    const EXPECTED: &'static str = "an amount in US dollars such as `0.50`";

    fn from_value(value: &Value) -> Option<Self> {
        let dollars: f64 = value.as_number()?.trim().parse().ok()?;
        Self::from_dollars(dollars).ok()
    }
}

impl<T: FromSetting> FromSetting for Vec<T> {
    const EXPECTED: &'static str = "a list";

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::List(values) => values.iter().map(T::from_value).collect(),
            _ => None,
        }
    }

    fn written(&self) -> Option<String> {
        let values: Option<Vec<_>> = self.iter().map(T::written).collect();
        Some(format!("[{}]", values?.join(", ")))
    }
}

macro_rules! whole_numbers {
    ($($number:ty: $expected:literal),*) => {$(
        impl FromSetting for $number {
            const EXPECTED: &'static str = $expected;

            fn from_value(value: &Value) -> Option<Self> {
                value.as_number()?.parse().ok()
            }

            fn written(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )*};
}

whole_numbers! {
    u16: "a whole number from 0 to 65535",
    u32: "a whole number from 0 to 4294967295",
    u64: "a whole number of at least 0",
    usize: "a whole number of at least 0",
    i64: "a whole number",
    NonZeroU32: "a whole number from 1 to 4294967295",
    NonZeroU64: "a whole number of at least 1"
}
