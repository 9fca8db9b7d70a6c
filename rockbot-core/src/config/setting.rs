//! One setting: what it holds and where it was set.

use std::borrow::Cow;
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{ConfigError, Value, parse_time_span};
use crate::Secret;
use crate::chat::MicroUsd;

/// One setting. It displays as its name and place, never as its value.
#[derive(Clone)]
pub struct Setting {
    pub(super) value: Value,
    pub(super) origin: Origin,
    pub(super) layer: u32,
}

/// Where a setting was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// In a file, under these names.
    File { key: String, path: Arc<Path> },
    /// By an environment variable; with our prefix it can be meant for nobody else.
    Variable { name: String, is_prefixed: bool },
}

impl Setting {
    /// What it holds, as a `T`.
    ///
    /// # Errors
    ///
    /// Fails when it holds something else.
    pub fn read<T: FromSetting>(&self) -> Result<T, ConfigError> {
        T::from_value(&self.value).ok_or_else(|| self.invalid(T::EXPECTED))
    }

    /// The error that this setting must be `expected`, such as "a port above 1023".
    pub fn invalid(&self, expected: impl Into<Cow<'static, str>>) -> ConfigError {
        ConfigError::Invalid {
            setting: self.to_string(),
            expected: expected.into(),
            found: self.value.kind(),
        }
    }

    /// Whether the environment set it, and no file.
    pub fn is_variable(&self) -> bool {
        matches!(self.origin, Origin::Variable { .. })
    }

    /// Whether the same file set it and `other`.
    pub fn is_beside(&self, other: &Self) -> bool {
        !self.is_variable() && self.layer == other.layer
    }

    /// Whether it was set later than `other`, and so wins where both mean the same.
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

/// A type that a setting can be read as.
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
    /// What the setting must be, for messages: "a whole number from 0 to 65535".
    const EXPECTED: &'static str;

    /// The value, if it is what it must be.
    fn from_value(value: &Value) -> Option<Self>;
}

impl FromSetting for String {
    const EXPECTED: &'static str = "text";

    fn from_value(value: &Value) -> Option<Self> {
        value.as_text().map(Self::from)
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
}

impl FromSetting for bool {
    const EXPECTED: &'static str = "`true` or `false`";

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Flag(flag) => Some(*flag),
            _ => value.as_text()?.to_ascii_lowercase().parse().ok(),
        }
    }
}

/// From `hh:mm:ss`, with days before and fractions after if need be; see [`parse_time_span`].
impl FromSetting for Duration {
    const EXPECTED: &'static str = "a time span such as `00:05:00`";

    fn from_value(value: &Value) -> Option<Self> {
        parse_time_span(value.as_text()?)
    }
}

/// From dollars.
impl FromSetting for MicroUsd {
    const EXPECTED: &'static str = "an amount in US dollars such as `0.50`";

    fn from_value(value: &Value) -> Option<Self> {
        let dollars: f64 = value.as_number()?.trim().parse().ok()?;
        (0.0..=1e9)
            .contains(&dollars)
            .then(|| Self((dollars * 1e6).round() as u64))
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
}

macro_rules! whole_numbers {
    ($($number:ty: $expected:literal),*) => {$(
        impl FromSetting for $number {
            const EXPECTED: &'static str = $expected;

            fn from_value(value: &Value) -> Option<Self> {
                value.as_number()?.parse().ok()
            }
        }
    )*};
}

whole_numbers! {
    u16: "a whole number from 0 to 65535",
    u32: "a whole number from 0 to 4294967295",
    u64: "a whole number of at least 0",
    usize: "a whole number of at least 0",
    NonZeroU32: "a whole number from 1 to 4294967295",
    NonZeroU64: "a whole number of at least 1"
}
