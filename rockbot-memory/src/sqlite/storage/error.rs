//! What can go wrong with a database.

use std::sync::Arc;

use rockbot_core::files::FileError;
use rockbot_core::store::StoreErrorKind;
use rusqlite::ErrorCode;

/// Why a database cannot be opened, read or written: the source of a [`StoreError`](rockbot_core::store::StoreError).
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SqliteError {
    /// Somebody else has it open.
    #[error(
        "it is in use: end the process that has it open, or close what has it open in this one, or use another file"
    )]
    InUse,
    /// Another program made it.
    #[error("it is a database of another program: use another file")]
    Foreign,
    /// A newer version of this program wrote it.
    #[error(
        "it has the format {found}, and this program knows those up to {known}: use a newer version of the program"
    )]
    Newer {
        /// The format of the file.
        found: i64,
        /// The newest that is known.
        known: i64,
    },
    /// It is no database, or not a whole one.
    #[error("it is damaged: put a copy in its place, or move it away; it was not changed ({0})")]
    Damaged(String),
    /// One row cannot be read. The others can.
    #[error("the {what} `{id}` in it cannot be read: delete it, or mend it with SQLite's own program ({source})")]
    Row {
        /// What it should be, such as `memory`.
        what: &'static str,
        /// Which one.
        id: String,
        /// What is wrong with it.
        source: Arc<serde_json::Error>,
    },
    /// Something is too long to be kept.
    #[error("the {what} `{id}` would have {len} bytes, and the most is {limit}: shorten it")]
    TooLarge {
        /// What it is, such as `memory`.
        what: &'static str,
        /// Which one.
        id: String,
        /// How long it is, in bytes.
        len: usize,
        /// How long it may be, in bytes.
        limit: usize,
    },
    /// Something cannot be written as JSON.
    #[error("it is no JSON: {0}")]
    Json(Arc<serde_json::Error>),
    /// Files cannot be used.
    #[error(transparent)]
    File(Arc<FileError>),
    /// The thread that writes, or the runtime that reads, has ended.
    #[error("nobody works on it any more: open it again, in a runtime that goes on")]
    Closed,
    /// SQLite refused.
    #[error("check the file, its permissions and the free space ({0})")]
    Sqlite(Arc<rusqlite::Error>),
}

impl From<&SqliteError> for StoreErrorKind {
    fn from(error: &SqliteError) -> Self {
        match error {
            SqliteError::InUse => Self::Locked,
            SqliteError::Foreign | SqliteError::Newer { .. } | SqliteError::Damaged(_) | SqliteError::Row { .. } => {
                Self::Damaged
            }
            SqliteError::TooLarge { .. } | SqliteError::Json(_) => Self::Invalid,
            SqliteError::File(error) => Self::from(&**error),
            SqliteError::Closed => Self::Closed,
            SqliteError::Sqlite(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => Self::Full,
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
                _ => Self::Io,
            },
        }
    }
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Self::Damaged(error.to_string()),
            _ => Self::Sqlite(Arc::new(error)),
        }
    }
}

impl From<FileError> for SqliteError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Locked(_) => Self::InUse,
            error => Self::File(Arc::new(error)),
        }
    }
}

impl From<serde_json::Error> for SqliteError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(Arc::new(error))
    }
}
