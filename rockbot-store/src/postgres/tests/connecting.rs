//! What `Postgres::connect` refuses, and what it says.

use std::time::Duration;

use rockbot_core::Principal;
use rockbot_core::config::Config;
use rockbot_core::store::SkillStore as _;
use rockbot_core::store::{StoreError, StoreErrorKind};
use rockbot_core::turn::{ClusterJournal, TurnJournal};

use super::claims::{accept, record, records};
use super::{TestServer, with_server};
use crate::postgres::{Postgres, PostgresError, PostgresOptions, PostgresSettings};

async fn refused(url: &str, options: PostgresOptions) -> StoreError {
    Postgres::connect_with(url, options).await.unwrap_err()
}

fn reason(error: &StoreError) -> PostgresError {
    error.cause().and_then(|cause| cause.downcast_ref()).cloned().unwrap()
}

async fn version(server: &TestServer, schema: &str, version: i32) {
    let sql = format!("INSERT INTO {schema}.schema_version VALUES ({version})");
    server.sql(&sql).await;
}

#[tokio::test]
async fn no_error_has_the_password() {
    for url in [
        "postgres://me:pass:word@127.0.0.1:1/test",
        "postgres://me:pass@word@127.0.0.1:1/test",
        "postgres://me:password@127.0.0.1:1/test",
        "postgres://me:password@127.0.0.1:port/test",
        "mysql://me:password@127.0.0.1/test",
    ] {
        let error = refused(url, PostgresOptions::default()).await;
        assert!(!format!("{error} {error:?}").contains("word@"), "{url}: {error:?}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_a_passing_error_that_names_it() {
    let error = refused("postgres://me:password@127.0.0.1:1/test", PostgresOptions::default()).await;
    assert!(error.retry_helps(), "{error:?}");
    assert!(
        error
            .to_string()
            .starts_with("the database `test` at 127.0.0.1:1 cannot be opened: "),
        "{error}"
    );
}

#[tokio::test]
async fn a_schema_has_a_plain_name() {
    for name in [
        "",
        "a b",
        "a\"; DROP SCHEMA public",
        "1a",
        "pg_temp",
        "Ab",
        &"a".repeat(64),
    ] {
        let options = PostgresOptions::default().with_schema(name);
        let error = refused("postgres://127.0.0.1:1/test", options).await;
        assert!(matches!(reason(&error), PostgresError::SchemaName(refused) if refused == name));
        assert_eq!(error.kind(), StoreErrorKind::Invalid);
    }
}

#[tokio::test]
async fn a_schema_of_a_newer_version_is_refused_by_name() {
    with_server(async |server| {
        let schema = server.new_schema();
        let options = PostgresOptions::default().with_schema(&*schema);
        server.open(&schema, options.clone()).await;
        server.open(&schema, options.clone()).await;
        version(server, &schema, 99).await;
        let error = refused(&server.url, options).await;
        assert!(
            matches!(reason(&error), PostgresError::Newer { schema: named, found: 99, known: 5 } if named == schema),
            "{error:?}"
        );
    })
    .await;
}

/// A skill as the first version wrote it.
const SKILL: &str = r#"{"name": "tea", "summary": "", "content": "Boil water.", "createdAt": "2026-01-01T00:00:00Z"}"#;

#[tokio::test]
async fn a_schema_of_the_first_version_is_migrated() {
    with_server(async |server| {
        let schema = server.new_schema();
        let journal = server.open(&schema, PostgresOptions::default()).await.journal;
        let claim = accept(&journal, "old", Duration::ZERO).await.unwrap();
        journal.append(&claim, &[record("1")]).await.unwrap();
        let first = format!(
            "SET search_path = {schema}; ALTER TABLE turn DROP COLUMN session, DROP COLUMN place, DROP COLUMN waits,
                ADD COLUMN appended bigint NOT NULL DEFAULT 1;
             DROP INDEX turn_owner; DROP TABLE turn_session; DROP SEQUENCE place_number;
             DROP TABLE memory, deleted_document, media, shared_document, vector; ALTER TABLE skill DROP COLUMN changed;
             INSERT INTO skill VALUES ('local', 'tea', '{SKILL}');
             DELETE FROM schema_version; INSERT INTO schema_version VALUES (1);
             INSERT INTO turn_record VALUES ('old', 1, 'late')"
        );
        server.sql(&first).await;
        let stores = server.open(&schema, PostgresOptions::default()).await;
        let skills = stores.skills.list(&Principal::default()).await.unwrap();
        assert_eq!(skills[0].content, "Boil water.");
        let journal = stores.journal;
        let claim = journal
            .claim(&"old".into(), "me", Duration::from_secs(60))
            .await
            .unwrap()
            .unwrap();
        assert!(
            journal.enter_session(&claim).await.unwrap(),
            "an old turn waits for none"
        );
        assert_eq!(records(&journal, "old").await, ["1"]);
    })
    .await;
}

#[tokio::test]
async fn a_look_at_the_database_changes_nothing() {
    with_server(async |server| {
        let schema = server.new_schema();
        let set = |url: &str| {
            Config::new().with_variables([
                ("ROCKBOT_POSTGRES__URL", url.to_owned()),
                ("ROCKBOT_POSTGRES__SCHEMA", schema.clone()),
            ])
        };
        let look = async || {
            PostgresSettings::from_config(&set(&server.url))
                .unwrap()
                .unwrap()
                .check()
                .await
        };
        for _ in 0..2 {
            let seen = look().await.unwrap();
            assert!(seen.ends_with(": it has no tables yet"), "{seen}");
        }
        server.open(&schema, PostgresOptions::default()).await;
        let seen = look().await.unwrap();
        assert!(seen.ends_with(": its tables have the version 5"), "{seen}");
        version(server, &schema, 4).await;
        server
            .sql(&format!("DELETE FROM {schema}.schema_version WHERE version = 5"))
            .await;
        let seen = look().await.unwrap();
        assert!(
            seen.ends_with(": its tables have the version 4, and this program has 5"),
            "{seen}"
        );
        let nowhere = set("postgres://ann:secret@127.0.0.1:9/agents");
        let nowhere = PostgresSettings::from_config(&nowhere).unwrap().unwrap();
        let error = nowhere.check().await.unwrap_err().to_string();
        assert!(
            error.contains("`agents` at 127.0.0.1:9") && !error.contains("secret"),
            "{error}"
        );
    })
    .await;
}

#[tokio::test]
async fn processes_that_start_at_once_make_one_schema() {
    with_server(async |server| {
        let schema = server.new_schema();
        let open = async || server.open(&schema, PostgresOptions::default()).await;
        tokio::join!(open(), open(), open(), open());
    })
    .await;
}
