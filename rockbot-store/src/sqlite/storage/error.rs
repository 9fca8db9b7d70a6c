//! [`SqliteError`]: the reason why a database operation failed.

use std::sync::Arc;

use rockbot_core::files::FileError;
use rockbot_core::store::StoreErrorKind;
use rusqlite::ErrorCode;

/// The reason why a database cannot be opened, read or written: the
/// [cause](rockbot_core::store::StoreError::cause) of a `StoreError`.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SqliteError {
    /// The file is open already, in this or another process.
    #[error(
        "it is in use: end the process that has it open, or close what has it open in this one, or use another file"
    )]
    InUse,
    /// The file belongs to another program.
    #[error("it is a database of another program: use another file")]
    Foreign,
    /// The file was written by a newer version of this crate.
    #[error(
        "it has the format {found}, and this program knows those up to {known}: use a newer version of the program"
    )]
    Newer {
        /// The version of the file.
        found: i64,
        /// The newest supported version.
        known: i64,
    },
    /// The file is not a database, or is damaged.
    #[error("it is damaged: put a copy in its place, or move it away; it was not changed ({0})")]
    Damaged(String),
    /// A row cannot be parsed. Other rows are not affected.
    #[error("the {what} `{id}` in it cannot be read: delete it, or mend it with SQLite's own program ({cause})")]
    Row {
        /// The kind of the row, such as `memory`.
        what: &'static str,
        /// The id of the item.
        id: String,
        /// The parse error.
        cause: Arc<serde_json::Error>,
    },
    /// An item exceeds its maximum size.
    #[error("the {what} `{id}` would have {len} bytes, and the most is {limit}: shorten it")]
    TooLarge {
        /// The kind of the item, such as `memory`.
        what: &'static str,
        /// The id of the item.
        id: String,
        /// The size of the item in bytes.
        len: usize,
        /// The maximum size in bytes.
        limit: usize,
    },
    /// A value cannot be serialized as JSON.
    #[error("a value cannot be serialized as JSON: {0}")]
    Json(Arc<serde_json::Error>),
    /// A file operation failed.
    #[error(transparent)]
    File(Arc<FileError>),
    /// The writer thread, or the runtime that runs the reads, has ended.
    #[error("it is closed: open it again, in a runtime that keeps running")]
    Closed,
    /// SQLite returned another error.
    #[error("check the file, its permissions and the free space ({cause})")]
    Sqlite {
        /// The kind of failure.
        kind: StoreErrorKind,
        /// The error of SQLite.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
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
            SqliteError::Sqlite { kind, .. } => *kind,
        }
    }
}

/// A [`SqliteError`] within a transaction. The conversions of `?` are this private type's, so
/// that the crates behind the database are no part of the public API.
#[derive(Debug, Clone)]
pub(in crate::sqlite) struct QueryError(pub(super) SqliteError);

impl QueryError {
    pub(in crate::sqlite) const CLOSED: Self = Self(SqliteError::Closed);
}

impl From<SqliteError> for QueryError {
    fn from(error: SqliteError) -> Self {
        Self(error)
    }
}

impl From<rusqlite::Error> for QueryError {
    fn from(error: rusqlite::Error) -> Self {
        let kind = match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                return Self(SqliteError::Damaged(error.to_string()));
            }
            Some(ErrorCode::DiskFull) => StoreErrorKind::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreErrorKind::Unavailable,
            _ => StoreErrorKind::Io,
        };
        Self(SqliteError::Sqlite {
            kind,
            cause: Arc::new(error),
        })
    }
}

impl From<FileError> for QueryError {
    fn from(error: FileError) -> Self {
        Self(match error {
            FileError::Locked(_) => SqliteError::InUse,
            error => SqliteError::File(Arc::new(error)),
        })
    }
}

impl From<serde_json::Error> for QueryError {
    fn from(error: serde_json::Error) -> Self {
        Self(SqliteError::Json(Arc::new(error)))
    }
}
