//! The tables, their version, and the migrations.
//!
//! Processes that start at the same time apply the migrations one after the other, under an
//! advisory lock that serves nothing else.

use tokio_postgres::{Client, GenericClient, Transaction};

use super::error::{PostgresError, QueryError};

/// The migration to each version of the schema from the version before it.
const VERSIONS: [&str; 5] = [TABLES, PLACES, DOCUMENTS, APPENDS, VECTORS];

/// The newest version.
pub(in crate::postgres) const VERSION: i32 = VERSIONS.len() as i32;

/// The advisory lock of migrations: `rkbt` as a number.
const LOCK: i64 = 0x726b_6274;

/// Texts of JSON are `text` and not `jsonb`: members keep their order, and what was written comes
/// back. Rows of logs are never changed, only deleted.
///
/// `turn.fence` comes from a sequence, so that the claim of a turn that was forgotten is never the
/// claim of a turn that was accepted anew. Updates of `until` and `cancel` touch no index, and a
/// page keeps room for them.
const TABLES: &str = "
CREATE SEQUENCE claim_number;
CREATE TABLE turn (id text PRIMARY KEY, number bigint GENERATED ALWAYS AS IDENTITY, agent text, digest text NOT NULL,
    header text NOT NULL, request text, token text NOT NULL, fence bigint NOT NULL, owner text, lease bigint NOT NULL,
    until bigint NOT NULL, cancel boolean NOT NULL DEFAULT false, appended bigint NOT NULL DEFAULT 0, outcome text,
    finished_at bigint) WITH (fillfactor = 70);
CREATE INDEX turn_unfinished ON turn (number) WHERE outcome IS NULL;
CREATE INDEX turn_finished ON turn (finished_at) WHERE outcome IS NOT NULL;
CREATE TABLE turn_record (turn text NOT NULL, number bigint NOT NULL, json text NOT NULL, PRIMARY KEY (turn, number));

CREATE TABLE session (principal text NOT NULL, session text NOT NULL, PRIMARY KEY (principal, session));
CREATE TABLE conversation (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, principal text NOT NULL,
    session text NOT NULL, turn text NOT NULL, json text NOT NULL);
CREATE INDEX conversation_session ON conversation (principal, session, number);

CREATE TABLE rule (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, principal text NOT NULL,
    folded text NOT NULL, text text NOT NULL, UNIQUE (principal, folded));
CREATE TABLE time_zone (principal text PRIMARY KEY, name text NOT NULL);

CREATE TABLE working (principal text NOT NULL, key text COLLATE \"C\" NOT NULL, namespace text NOT NULL,
    bytes bigint NOT NULL, expires_at bigint NOT NULL, json text NOT NULL, PRIMARY KEY (principal, key));
CREATE INDEX working_namespace ON working (principal, namespace);
CREATE INDEX working_expiry ON working (expires_at);
CREATE TABLE working_namespace_lock (principal text NOT NULL, namespace text NOT NULL,
    PRIMARY KEY (principal, namespace));

CREATE TABLE skill (principal text NOT NULL, id text COLLATE \"C\" NOT NULL, json text NOT NULL,
    PRIMARY KEY (principal, id));

CREATE TABLE skill_usage (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, principal text NOT NULL,
    at bigint NOT NULL, json text NOT NULL);
CREATE INDEX skill_usage_at ON skill_usage (principal, at);
CREATE TABLE feedback (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, principal text NOT NULL,
    at bigint NOT NULL, json text NOT NULL);
CREATE INDEX feedback_at ON feedback (principal, at);

CREATE TABLE log (principal text NOT NULL, position bigint NOT NULL, json text NOT NULL,
    PRIMARY KEY (principal, position));
CREATE TABLE log_end (principal text PRIMARY KEY, position bigint NOT NULL, bytes bigint NOT NULL);
CREATE TABLE log_reader (principal text NOT NULL, reader text NOT NULL, position bigint NOT NULL,
    PRIMARY KEY (principal, reader));
";

/// The places of turns in their sessions. A row of `turn_session` is a lock: places are given one
/// after the other, so that a process which sees a place sees all places before it.
const PLACES: &str = "
CREATE SEQUENCE place_number;
CREATE TABLE turn_session (id text PRIMARY KEY, at bigint NOT NULL) WITH (fillfactor = 70);
ALTER TABLE turn ADD COLUMN session text, ADD COLUMN place bigint, ADD COLUMN waits boolean NOT NULL DEFAULT false;
CREATE INDEX turn_place ON turn (session, place) WHERE outcome IS NULL AND place IS NOT NULL;
CREATE INDEX turn_owner ON turn (owner) WHERE outcome IS NULL AND owner IS NOT NULL;
";

/// Documents that each process keeps in memory. `changed` is the transaction that wrote a row, by
/// which a process finds what has changed; `wording` finds a repetition of the same fact, and is
/// null for memories that are archived. The bytes of media are not compressed: images are already.
const DOCUMENTS: &str = "
CREATE TABLE memory (principal text NOT NULL, id text COLLATE \"C\" NOT NULL, wording text, json text NOT NULL,
    changed bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint, PRIMARY KEY (principal, id));
CREATE INDEX memory_changed ON memory (principal, changed);
CREATE INDEX memory_wording ON memory (principal, wording) WHERE wording IS NOT NULL;
CREATE INDEX memory_archived ON memory (principal, id) WHERE wording IS NULL;
ALTER TABLE skill ADD COLUMN changed bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint;
CREATE INDEX skill_changed ON skill (principal, changed);
CREATE TABLE deleted_document (kind text NOT NULL, principal text NOT NULL, id text NOT NULL,
    changed bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint, at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (kind, principal, id));
CREATE INDEX deleted_document_changed ON deleted_document (kind, principal, changed);

CREATE TABLE media (principal text NOT NULL, digest text NOT NULL, put_at bigint NOT NULL, bytes bytea NOT NULL,
    PRIMARY KEY (principal, digest));
ALTER TABLE media ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE INDEX media_put ON media (put_at);

CREATE TABLE shared_document (name text PRIMARY KEY, version bigint NOT NULL DEFAULT 0, json text,
    fence bigint NOT NULL, held_until bigint NOT NULL);
";

/// The rows of a turn count its appends. Rows beyond the count of before are what appends left that
/// were too late. A process of the version before, which knows the count alone, writes no more.
const APPENDS: &str = "
DELETE FROM turn_record USING turn WHERE turn_record.turn = turn.id AND turn_record.number >= turn.appended;
ALTER TABLE turn DROP COLUMN appended;
";

/// The vectors of texts, which are not compressed: numbers are as good as random.
const VECTORS: &str = "
CREATE TABLE vector (principal text NOT NULL, text text NOT NULL, numbers bytea NOT NULL,
    PRIMARY KEY (principal, text));
ALTER TABLE vector ALTER COLUMN numbers SET STORAGE EXTERNAL;
";

/// Marks rows anew whose transactions are still to come: a backup of another server was restored,
/// and each search would take these rows for new.
const RESTORED: &str = "
UPDATE memory SET changed = DEFAULT WHERE changed > pg_current_xact_id()::text::bigint;
UPDATE skill SET changed = DEFAULT WHERE changed > pg_current_xact_id()::text::bigint;
DELETE FROM deleted_document WHERE changed > pg_current_xact_id()::text::bigint;
";

/// Creates the schema and its tables where they are missing, and applies missing migrations.
///
/// A schema of a newer version is refused unchanged.
pub(super) async fn prepare(client: &mut Client, schema: &str) -> Result<(), QueryError> {
    let change = client.transaction().await?;
    change.query("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    let found = version(&change, schema).await?;
    if found > VERSION {
        let (schema, known) = (schema.to_owned(), VERSION);
        return Err(PostgresError::Newer { schema, found, known }.into());
    }
    // One transaction: a crash during a migration leaves the old version.
    for step in VERSIONS.iter().skip(usize::try_from(found).unwrap_or_default()) {
        change.batch_execute(step).await?;
    }
    if found < VERSION {
        change
            .execute("INSERT INTO schema_version (version) VALUES ($1)", &[&VERSION])
            .await?;
    }
    change.batch_execute(RESTORED).await?;
    change.commit().await?;
    Ok(())
}

/// Returns the version of the schema, 0 if it has no tables.
pub(super) async fn found(client: &Client, schema: &str) -> Result<i32, QueryError> {
    let sql = "SELECT to_regclass($1 || '.schema_version') IS NOT NULL";
    if client.query_one(sql, &[&schema]).await?.get(0) {
        newest(client).await
    } else {
        Ok(0)
    }
}

async fn newest(client: &impl GenericClient) -> Result<i32, QueryError> {
    let sql = "SELECT coalesce(max(version), 0) FROM schema_version";
    Ok(client.query_one(sql, &[]).await?.get(0))
}

/// Returns the version of the schema, 0 for a new one. A role that may not create schemas can use
/// one that was made for it.
async fn version(change: &Transaction<'_>, schema: &str) -> Result<i32, QueryError> {
    let sql = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
    if change.query_opt(sql, &[&schema]).await?.is_none() {
        change.batch_execute(&format!("CREATE SCHEMA {schema}")).await?;
    }
    let sql = "CREATE TABLE IF NOT EXISTS schema_version (version integer PRIMARY KEY)";
    change.batch_execute(sql).await?;
    newest(change).await
}
