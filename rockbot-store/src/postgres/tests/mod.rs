//! Runs the conformance suite of each store in schemas of their own.

mod claims;
mod connecting;
mod documents;
mod interleavings;
mod rate;
mod suites;
mod tls;

use std::panic::AssertUnwindSafe;
use std::sync::Mutex;

use rockbot_core::{IdSource, RandomIds};
use tokio_postgres::NoTls;

use super::{Postgres, PostgresOptions};

/// A server whose schemas of one test are dropped at its end.
struct TestServer {
    url: String,
    schemas: Mutex<Vec<String>>,
}

/// Runs a test on the server. Without a server the test is skipped.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
async fn with_server(test: impl AsyncFnOnce(&TestServer)) {
    let url = std::env::var("ROCKBOT_TEST_POSTGRES");
    let url = url.unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/test".to_owned());
    if let Err(error) = tokio_postgres::connect(&url, NoTls).await {
        let is_required = std::env::var("ROCKBOT_TEST_REQUIRE").is_ok_and(|required| required == "all");
        assert!(!is_required, "{error}");
        return println!("SKIPPED: no PostgreSQL answers: {error}");
    }
    let server = TestServer {
        url,
        schemas: Mutex::default(),
    };
    let ended = futures_util::FutureExt::catch_unwind(AssertUnwindSafe(test(&server))).await;
    let schemas = server.schemas.lock().unwrap().clone();
    for schema in schemas {
        server.sql(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await;
    }
    if let Err(panic) = ended {
        std::panic::resume_unwind(panic);
    }
}

impl TestServer {
    /// Returns the name of a schema that is dropped at the end of the test.
    fn new_schema(&self) -> String {
        let name = format!("test_{}", RandomIds.next_id());
        self.schemas.lock().unwrap().push(name.clone());
        name
    }

    /// Returns the stores of a new schema.
    async fn stores(&self) -> Postgres {
        self.stores_with(PostgresOptions::default()).await
    }

    /// Returns the stores of a new schema with `options`.
    async fn stores_with(&self, options: PostgresOptions) -> Postgres {
        self.open(&self.new_schema(), options).await
    }

    /// Opens the stores of a schema, as a process would.
    async fn open(&self, schema: &str, options: PostgresOptions) -> Postgres {
        let options = options.with_schema(schema).with_max_connections(4);
        Postgres::connect_with(&self.url, options).await.unwrap()
    }

    /// Changes the database as another program might.
    async fn sql(&self, sql: &str) {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(sql).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
    }
}
