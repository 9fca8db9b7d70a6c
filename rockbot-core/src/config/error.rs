//! The errors of reading the configuration, and the warning about a setting that has no effect.
//!
//! No message repeats a value: a value may be a key or a password that stands in the wrong place.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

/// An error of the configuration: a file that cannot be read, or a setting that cannot be used.
///
/// The message names the setting, and the file or variable that sets it. `Debug` prints the same
/// message, because a `main` that returns the error prints `Debug`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the settings in `{path}`: {cause}")]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// The file's extension names no supported format.
    #[error("`{path}` is neither `.json` nor `.toml`: rename it after what it holds")]
    UnknownFormat {
        /// The path of the file.
        path: PathBuf,
    },
    /// The file does not have the format that its extension names.
    #[error("`{path}` is not {format}, at line {line} column {column}")]
    Syntax {
        /// The path of the file.
        path: PathBuf,
        /// The expected format, such as `JSON`.
        format: &'static str,
        /// The line of the first syntax error, counted from 1.
        line: usize,
        /// The column of the first syntax error, counted from 1.
        column: usize,
    },
    /// A file sets the same setting twice, in names that differ in case only.
    #[error("{setting} is set twice: remove one of them")]
    Duplicate {
        /// The setting, and the file that sets it.
        setting: String,
    },
    /// A setting has a value of the wrong type or out of range.
    #[error("{setting}: expected {expected}, found {found}")]
    Invalid {
        /// The setting, and the file or variable that sets it.
        setting: String,
        /// A description of the values that the setting accepts.
        expected: Cow<'static, str>,
        /// The kind of the given value, never the value itself.
        found: &'static str,
    },
    /// A file, or a variable with the prefix `ROCKBOT_`, names no known setting.
    #[error("{0}")]
    Unknown(UnknownKey),
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A setting that has no effect because no part of the program reads it: its name is misspelt, or
/// it is a section whose part is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownKey {
    /// The full name, such as `Memory.BasePth`.
    pub name: String,
    /// The setting, and the file or variable that sets it.
    pub setting: String,
    /// The known name that is most similar, if one is similar enough.
    pub meant: Option<String>,
    /// The known names in the same section.
    pub known: Vec<String>,
    /// `true` for a section of a known name whose settings were never read: the program lacks the
    /// part that reads it.
    pub is_unread: bool,
    /// `true` for an error rather than a warning. An unknown name is an error in a file and in a
    /// variable with the prefix `ROCKBOT_`, which are meant for this program; other variables may
    /// belong to other programs. An [unread](Self::is_unread) section is a warning, since several
    /// programs may share a file.
    pub is_error: bool,
}

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unread {
            return write!(f, "{} has no effect: no part of the program reads it", self.setting);
        }
        write!(f, "{} is not a setting", self.setting)?;
        match (&self.meant, &*self.known) {
            (Some(meant), _) => write!(f, "; did you mean `{meant}`?"),
            (None, []) => Ok(()),
            (None, known) => write!(f, "; known here: `{}`", known.join("`, `")),
        }
    }
}
