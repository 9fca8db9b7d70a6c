//! What can be wrong with the configuration. No message repeats a value: it might be a key in the wrong place.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use super::UnknownKey;

/// Configuration that cannot be used.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the settings in `{path}`: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Nobody knows how to read the file.
    #[error("`{path}` is neither `.json` nor `.toml`: rename it after what it holds")]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// The file is not what its ending says.
    #[error("`{path}` is not {format}, at line {line} column {column}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What it should be.
        format: &'static str,
        /// Where it stops being that, counted from 1.
        line: usize,
        /// Where in that line, counted from 1.
        column: usize,
    },
    /// A file sets something twice, in another case.
    #[error("{setting} is set twice: remove one of them")]
    Duplicate {
        /// The setting, and where it is set.
        setting: String,
    },
    /// A setting is not what it must be.
    #[error("{setting}: expected {expected}, found {found}")]
    Invalid {
        /// The setting, and where it is set.
        setting: String,
        /// What it must be.
        expected: Cow<'static, str>,
        /// What kind of value it is.
        found: &'static str,
    },
    /// A variable with our prefix is meant for us, and nobody reads it.
    #[error("{0}")]
    Unknown(UnknownKey),
}

/// The message: a `main` that returns the error prints this.
impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
