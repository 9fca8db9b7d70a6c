//! [`PostgresError`]: the reason why a database operation failed.

use std::error::Error as _;
use std::sync::Arc;

use deadpool_postgres::PoolError;
use rockbot_core::store::StoreErrorKind;
use tokio_postgres::error::SqlState;

/// The reason why a database cannot be reached, read or written: the
/// [cause](rockbot_core::store::StoreError::cause) of a `StoreError`. No text of it has a password.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// The URL cannot be understood.
    #[error(
        "the URL is not of the form `postgres://USER:PASSWORD@HOST:PORT/DATABASE`: write signs of the password like `@`, `:` and `/` as `%40`, `%3A` and `%2F`"
    )]
    Url,
    /// The authorities that sign the server's certificate cannot be read.
    #[error("the authorities that sign the server's certificate cannot be read: {reason}")]
    Authorities {
        /// The file, and what is wrong with it.
        reason: String,
    },
    /// The name of the schema cannot be used.
    #[error(
        "`{0}` cannot name a schema: use at most 63 of `a` to `z`, `0` to `9` and `_`, no digit first, and not `pg_`"
    )]
    SchemaName(String),
    /// The tables were made by a newer version of this crate.
    #[error(
        "the schema `{schema}` has the version {found}, and this program knows those up to {known}: use a newer version of the program, or another schema"
    )]
    Newer {
        /// The name of the schema.
        schema: String,
        /// The version of the schema.
        found: i32,
        /// The newest supported version.
        known: i32,
    },
    /// The connections are all in use for longer than a call may wait.
    #[error("no connection became free in time: allow more connections, or find what keeps the server busy")]
    Busy,
    /// A row cannot be parsed. Other rows are not affected.
    #[error("the {what} `{id}` in it cannot be read: delete it, or mend it with psql ({cause})")]
    Row {
        /// The kind of the row, such as `skill`.
        what: &'static str,
        /// The id of the item.
        id: String,
        /// The parse error.
        cause: Arc<serde_json::Error>,
    },
    /// An item exceeds its maximum size.
    #[error("the {what} `{id}` would have {len} bytes, and the most is {limit}: shorten it")]
    TooLarge {
        /// The kind of the item, such as `skill`.
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
    /// The server refused the operation, or the connection to it failed.
    #[error("{text}")]
    Server {
        /// The kind of failure.
        kind: StoreErrorKind,
        /// The message of the server, or the state of the connection.
        text: String,
    },
}

impl PostgresError {
    /// Returns `true` if the same call may succeed when it is repeated a little later.
    pub fn retry_helps(&self) -> bool {
        StoreErrorKind::from(self) == StoreErrorKind::Unavailable
    }
}

impl From<&PostgresError> for StoreErrorKind {
    fn from(error: &PostgresError) -> Self {
        match error {
            PostgresError::Url
            | PostgresError::Authorities { .. }
            | PostgresError::SchemaName(_)
            | PostgresError::TooLarge { .. }
            | PostgresError::Json(_) => Self::Invalid,
            PostgresError::Newer { .. } | PostgresError::Row { .. } => Self::Damaged,
            PostgresError::Busy => Self::Unavailable,
            PostgresError::Server { kind, .. } => *kind,
        }
    }
}

/// A [`PostgresError`] within a transaction. The conversions of `?` are this private type's, so
/// that the crates behind the database are no part of the public API.
#[derive(Debug, Clone)]
pub(in crate::postgres) struct QueryError(pub(super) PostgresError);

impl QueryError {
    /// Returns `true` if the statement may succeed when it is sent again. It may have taken effect
    /// before, such as when its connection broke.
    pub(in crate::postgres) fn retry_helps(&self) -> bool {
        self.0.retry_helps()
    }

    /// Returns `true` if the statement would have written a key that another one wrote.
    pub(in crate::postgres) fn is_conflict(&self) -> bool {
        StoreErrorKind::from(&self.0) == StoreErrorKind::Conflict
    }
}

impl From<PostgresError> for QueryError {
    fn from(error: PostgresError) -> Self {
        Self(error)
    }
}

impl From<serde_json::Error> for QueryError {
    fn from(error: serde_json::Error) -> Self {
        Self(PostgresError::Json(Arc::new(error)))
    }
}

impl From<tokio_postgres::Error> for QueryError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(refused) = error.as_db_error() else {
            return Self(of_connection(&error));
        };
        let hint = refused.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        Self(PostgresError::Server {
            kind: kind(refused.code()),
            // Without the detail, which may quote values.
            text: format!("the server says: {}{hint}", refused.message()),
        })
    }
}

impl From<PoolError> for QueryError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => error.into(),
            PoolError::Timeout(_) => Self(PostgresError::Busy),
            error => Self(PostgresError::Server {
                kind: StoreErrorKind::Unavailable,
                text: format!("no connection can be had: {error}"),
            }),
        }
    }
}

/// Describes an error that no server stated: of the connection, or of a value.
fn of_connection(error: &tokio_postgres::Error) -> PostgresError {
    let source = error.source();
    let is_io = source.is_some_and(|source| source.is::<std::io::Error>());
    let kind = match is_io || error.is_closed() || error.to_string().starts_with("error connecting") {
        true => StoreErrorKind::Unavailable,
        false => StoreErrorKind::Io,
    };
    let source = source.map(|source| format!(": {source}")).unwrap_or_default();
    let text = format!("{error}{source}; check that the server runs and that the URL names it");
    PostgresError::Server { kind, text }
}

/// Tells passing refusals from the others, by the class of their code.
fn kind(code: &SqlState) -> StoreErrorKind {
    const READ_ONLY: &str = "25006";
    const UNIQUE: &str = "23505";
    match (code.code().get(..2).unwrap_or_default(), code.code()) {
        // A serialization failure, a deadlock, too many connections, no memory, a lock that was not
        // had in time, a statement that took too long, a server that stops or becomes the primary.
        ("08" | "40" | "57", _) | (_, "53300" | "53200" | "55P03" | READ_ONLY) => StoreErrorKind::Unavailable,
        ("53", _) => StoreErrorKind::Full,
        ("22", _) => StoreErrorKind::Invalid,
        (_, UNIQUE) => StoreErrorKind::Conflict,
        ("XX", "XX001" | "XX002") => StoreErrorKind::Damaged,
        _ => StoreErrorKind::Io,
    }
}
