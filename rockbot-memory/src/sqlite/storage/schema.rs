//! What stands in the file.

use rusqlite::{Connection, TransactionBehavior};

use super::error::SqliteError;

/// Tells our files from those of other programs: `rkbt`.
const APPLICATION: i64 = 0x726b_6274;

/// What makes each version of the file of the one before it.
const VERSIONS: [&str; 2] = [TABLES, TIME_ZONES];

/// The newest version.
const VERSION: i64 = VERSIONS.len() as i64;

/// `memory.wording` is a digest of what a live entry says, by which the same is found when it is learned again. Rows of
/// logs are never changed, only removed.
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

/// Looks whether the file is ours, whole and not newer, and makes the tables that it lacks. A file that is refused is not
/// changed.
pub(in crate::sqlite) fn prepare(connection: &mut Connection) -> Result<(), SqliteError> {
    let found = check(connection)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let missing = VERSIONS.iter().skip(found);
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

/// The version of the file; 0 when nothing is in it yet.
fn check(connection: &Connection) -> Result<usize, SqliteError> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
    let version = match (number("application_id")?, number("user_version")?) {
        (0, 0) if tables == 0 => return Ok(0),
        (APPLICATION, version @ 1..=VERSION) => usize::try_from(version).unwrap_or(VERSIONS.len()),
        (APPLICATION, found) if found > VERSION => return Err(SqliteError::Newer { found, known: VERSION }),
        _ => return Err(SqliteError::Foreign),
    };
    let found: String = connection.query_row("PRAGMA quick_check(1)", (), |row| row.get(0))?;
    match found.as_str() {
        "ok" => Ok(version),
        _ => Err(SqliteError::Damaged(found)),
    }
}
