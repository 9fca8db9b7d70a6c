//! The schema of the file, its version, and the checks before it is used.

use rusqlite::{Connection, TransactionBehavior};

use super::error::{QueryError, SqliteError};

/// The application id that marks a file of this crate: `rkbt`.
const APPLICATION: i64 = 0x726b_6274;

/// The migration to each version of the file from the version before it.
const VERSIONS: [&str; 2] = [TABLES, TIME_ZONES];

/// The newest version.
const VERSION: i64 = VERSIONS.len() as i64;

/// `memory.wording` is a digest of a live memory's wording; it finds a repetition of the same
/// fact. Rows of logs are never changed, only deleted.
const TABLES: &str = "
CREATE TABLE memory (principal TEXT NOT NULL, id TEXT NOT NULL, json TEXT NOT NULL, wording TEXT,
    PRIMARY KEY (principal, id)) STRICT;
CREATE INDEX memory_wording ON memory (principal, wording) WHERE wording IS NOT NULL;

CREATE TABLE skill (principal TEXT NOT NULL, id TEXT NOT NULL, json TEXT NOT NULL, PRIMARY KEY (principal, id)) STRICT;

CREATE TABLE skill_usage (number INTEGER PRIMARY KEY, principal TEXT NOT NULL, at INTEGER NOT NULL,
    json TEXT NOT NULL) STRICT;
CREATE INDEX skill_usage_at ON skill_usage (principal, at);

CREATE TABLE feedback (number INTEGER PRIMARY KEY, principal TEXT NOT NULL, at INTEGER NOT NULL,
    json TEXT NOT NULL) STRICT;
CREATE INDEX feedback_at ON feedback (principal, at);

CREATE TABLE rule (number INTEGER PRIMARY KEY, principal TEXT NOT NULL, folded TEXT NOT NULL, text TEXT NOT NULL,
    UNIQUE (principal, folded)) STRICT;

CREATE TABLE conversation (number INTEGER PRIMARY KEY, principal TEXT NOT NULL, session TEXT NOT NULL,
    turn TEXT NOT NULL, json TEXT NOT NULL) STRICT;
CREATE INDEX conversation_session ON conversation (principal, session);

CREATE TABLE log (principal TEXT NOT NULL, position INTEGER NOT NULL, json TEXT NOT NULL,
    PRIMARY KEY (principal, position)) STRICT;
CREATE TABLE log_end (principal TEXT PRIMARY KEY, position INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT;
CREATE TABLE log_reader (principal TEXT NOT NULL, reader TEXT NOT NULL, position INTEGER NOT NULL,
    PRIMARY KEY (principal, reader)) STRICT;

CREATE TABLE working (principal TEXT NOT NULL, key TEXT NOT NULL, namespace TEXT NOT NULL, bytes INTEGER NOT NULL,
    expires_at INTEGER NOT NULL, json TEXT NOT NULL, PRIMARY KEY (principal, key)) STRICT;
CREATE INDEX working_namespace ON working (principal, namespace);
CREATE INDEX working_expiry ON working (expires_at);
";

const TIME_ZONES: &str = "CREATE TABLE time_zone (principal TEXT PRIMARY KEY, name TEXT NOT NULL) STRICT;";

/// Checks that the file is undamaged, of this crate and not newer, then switches it to WAL and
/// runs missing migrations. A refused file is not changed.
pub(in crate::sqlite) fn prepare(connection: &mut Connection) -> Result<(), QueryError> {
    let found = check(connection)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    // `FULL` syncs the WAL at each commit: an acknowledged write survives power loss.
    connection.pragma_update(None, "synchronous", "FULL")?;
    let missing = VERSIONS.iter().skip(found);
    // One transaction: a crash during a migration leaves the old version.
    if missing.len() > 0 {
        let tables = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for step in missing {
            tables.execute_batch(step)?;
        }
        tables.pragma_update(None, "application_id", APPLICATION)?;
        tables.pragma_update(None, "user_version", VERSION)?;
        tables.commit()?;
    }
    Ok(())
}

/// Returns the version of the file, 0 for an empty one.
fn check(connection: &Connection) -> Result<usize, QueryError> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
    let version = match (number("application_id")?, number("user_version")?) {
        (0, 0) if tables == 0 => return Ok(0),
        (APPLICATION, version @ 1..=VERSION) => usize::try_from(version).unwrap_or(VERSIONS.len()),
        (APPLICATION, found) if found > VERSION => return Err(SqliteError::Newer { found, known: VERSION }.into()),
        _ => return Err(SqliteError::Foreign.into()),
    };
    let found: String = connection.query_row("PRAGMA quick_check(1)", (), |row| row.get(0))?;
    match found.as_str() {
        "ok" => Ok(version),
        _ => Err(SqliteError::Damaged(found).into()),
    }
}
