//! The pool of connections, and statements on them.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use rockbot_core::store::{StoreError, StoreErrorKind};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, NoTls, Row};

use super::error::{PostgresError, QueryError};
use super::{schema, tls};
use crate::postgres::PostgresOptions;

/// Maximum time to make a connection, and to wait for a free one.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Maximum time without a sign of the server while it owes one.
const SILENCE: Duration = Duration::from_secs(30);

/// The options of each connection: names without a schema are those of ours, and no statement runs
/// for longer than half a minute.
macro_rules! options {
    () => {
        "-c search_path={} -c statement_timeout=30000 -c idle_in_transaction_session_timeout=60000"
    };
}

/// A statement whose text is put together from literals, at compile time.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $($text:expr),+;)+) => {
        $($(#[$doc])* const $name: &str = concat!($($text),+);)+
    };
}
pub(in crate::postgres) use statements;

/// The time in milliseconds: the database's, or that of a clock that a test gives.
macro_rules! now {
    ($given:literal) => {
        concat!(
            "coalesce(",
            $given,
            "::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)"
        )
    };
}
pub(in crate::postgres) use now;

/// The connections to one schema of a database.
pub(in crate::postgres) struct Database {
    pool: Pool,
    /// The database and its address, for errors.
    place: String,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl Database {
    /// Connects, checks the version of the schema and applies its migrations.
    pub(in crate::postgres) async fn open(url: &str, options: &PostgresOptions) -> Result<Self, StoreError> {
        let config = configure(url, options);
        let place = config.as_ref().map_or_else(|_| "PostgreSQL".to_owned(), place);
        let opened = match config {
            Ok(config) => connect(config, options).await,
            Err(error) => Err(error),
        };
        match opened {
            Ok(pool) => Ok(Self { pool, place }),
            Err(error) => Err(failed(&place, "opened", error)),
        }
    }

    /// Looks at the database at `url`, and changes nothing. Returns its name and address, and the
    /// version of its tables, 0 if there are none.
    pub(in crate::postgres) async fn look(url: &str, options: &PostgresOptions) -> Result<(String, i32), StoreError> {
        let config = configure(url, options);
        let place = config.as_ref().map_or_else(|_| "PostgreSQL".to_owned(), place);
        let looked = async {
            let client = pool(config?, options)?.get().await?;
            schema::found(&client, &options.schema).await
        };
        match looked.await {
            Ok(version) => Ok((place, version)),
            Err(error) => Err(failed(&place, "opened", error)),
        }
    }

    /// Returns a connection. It goes back to the pool when it is dropped.
    pub(in crate::postgres) async fn client(&self) -> Result<Object, QueryError> {
        Ok(self.pool.get().await?)
    }

    /// Runs one statement, which is a transaction of its own, and returns its rows.
    pub(in crate::postgres) async fn query(
        &self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, QueryError> {
        let client = self.client().await?;
        let statement = client.prepare_cached(sql).await?;
        Ok(client.query(&statement, values).await?)
    }

    /// Runs one statement like [`Database::query`], for a store that reads.
    pub(in crate::postgres) async fn read(
        &self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        let rows = self.query(sql, values).await;
        rows.map_err(|error| self.unreadable(error))
    }

    /// Runs one statement, and returns the number of rows that it wrote.
    pub(in crate::postgres) async fn write(
        &self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, StoreError> {
        let written = async {
            let client = self.client().await?;
            let statement = client.prepare_cached(sql).await?;
            Ok(client.execute(&statement, values).await?)
        };
        written.await.map_err(|error| self.unwritten(error))
    }

    /// Returns the error of a read, with the place of the database.
    pub(in crate::postgres) fn unreadable(&self, error: QueryError) -> StoreError {
        failed(&self.place, "read", error)
    }

    /// Returns the error of a write, with the place of the database.
    pub(in crate::postgres) fn unwritten(&self, error: QueryError) -> StoreError {
        failed(&self.place, "written", error)
    }
}

/// Reads the URL, and sets the bounds of waits that it does not set.
fn configure(url: &str, options: &PostgresOptions) -> Result<Config, QueryError> {
    // The parser's error may quote a part of the password.
    let mut config: Config = url.parse().map_err(|_| PostgresError::Url)?;
    // A password with an `@` of its own ends in what the parser takes for the host.
    let has_at = |host: &Host| matches!(host, Host::Tcp(host) if host.contains('@'));
    if config.get_hosts().iter().any(has_at) {
        return Err(PostgresError::Url.into());
    }
    check_name(&options.schema)?;
    let own = config.get_options().map(|own| format!("{own} ")).unwrap_or_default();
    config.options(own + &format!(options!(), options.schema));
    if options.ca_file.is_some() {
        config.ssl_mode(SslMode::Require);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIME);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    config.keepalives_idle(SILENCE);
    if config.get_application_name().is_none() {
        config.application_name("rockbot");
    }
    Ok(config)
}

/// Checks that a name can stand in statements as it is.
fn check_name(schema: &str) -> Result<(), QueryError> {
    let is_plain = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_');
    let is_name = !schema.is_empty()
        && schema.len() <= 63
        && schema.chars().all(is_plain)
        && !schema.starts_with(|c: char| c.is_ascii_digit())
        && !schema.starts_with("pg_");
    if is_name {
        Ok(())
    } else {
        Err(PostgresError::SchemaName(schema.to_owned()).into())
    }
}

/// Returns the manager of connections, which are encrypted where the URL demands it. A server may
/// offer an encryption with a certificate that no authority signed, as Debian's does, so an offer
/// alone is not taken.
fn manager(config: Config, ca_file: Option<&Path>) -> Result<Manager, PostgresError> {
    let recycling_method = RecyclingMethod::Fast;
    let options = ManagerConfig { recycling_method };
    if config.get_ssl_mode() == SslMode::Require {
        let connector = tls::connector(ca_file)?;
        return Ok(Manager::from_config(config, connector, options));
    }
    if !is_local(&config) {
        tracing::warn!("the connection to PostgreSQL is not encrypted: add `?sslmode=require` to the URL");
    }
    Ok(Manager::from_config(config, NoTls, options))
}

/// Returns `true` if the server is on this machine.
fn is_local(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(host) => host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
        #[cfg(unix)]
        Host::Unix(_) => true,
    })
}

async fn connect(config: Config, options: &PostgresOptions) -> Result<Pool, QueryError> {
    let pool = pool(config, options)?;
    let mut client = pool.get().await?;
    schema::prepare(&mut client, &options.schema).await?;
    drop(client);
    Ok(pool)
}

/// Returns a pool without connections.
fn pool(config: Config, options: &PostgresOptions) -> Result<Pool, QueryError> {
    let manager = manager(config, options.ca_file.as_deref())?;
    let pool = Pool::builder(manager)
        .max_size(options.max_connections.max(1))
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(CONNECT_TIME))
        .create_timeout(Some(CONNECT_TIME))
        .build();
    Ok(pool.map_err(|error| PostgresError::Server {
        kind: StoreErrorKind::Invalid,
        text: error.to_string(),
    })?)
}

/// Names the database and its address.
fn place(config: &Config) -> String {
    let name = config.get_dbname().or(config.get_user()).unwrap_or_default();
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(host) => format!("{host}:{port}"),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    });
    format!("the database `{name}` at {}", hosts.collect::<Vec<_>>().join(", "))
}

/// Returns the error of an operation that failed, with the place of the database.
fn failed(place: &str, tried: &str, QueryError(cause): QueryError) -> StoreError {
    StoreError::new(StoreErrorKind::from(&cause), format!("{place} cannot be {tried}")).with_cause(cause)
}
