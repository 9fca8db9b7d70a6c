//! [`PostgresSettings`]: the section `Postgres`.

use std::path::PathBuf;

use rockbot_core::config::{Config, ConfigError};
use rockbot_core::store::StoreError;
use rockbot_core::{ExposeSecret as _, Secret};

use super::storage::{Database, VERSION};
use super::{Postgres, PostgresOptions};

/// The database of the section `Postgres`.
///
/// | setting | meaning | default |
/// |---|---|---|
/// | `Url` | `postgres://user:password@host:port/database` | required |
/// | `CaFile` | certificates, in PEM, of the authorities that sign the server's certificate | those of this machine, with `sslmode=require` in the URL |
/// | `Schema` | schema with the tables | `rockbot` |
/// | `MaxConnections` | maximum number of connections of this process | 16 |
/// | `Lease` | time that a process may be silent before another one takes over its turns | 30 s |
/// | `ConversationWindow` | maximum number of entries that conversation memory keeps of a session | 50 |
///
/// With `ConversationLog.Enabled` the database has the log of conversations, too.
#[derive(Debug)]
pub struct PostgresSettings {
    url: Secret,
    options: PostgresOptions,
    logs_conversations: bool,
}

impl PostgresSettings {
    /// Reads the section `Postgres`. Returns `None` if nothing is set there: the stores are then
    /// files.
    ///
    /// # Errors
    ///
    /// Returns an error that names the setting, never its value, if a setting is invalid.
    pub fn from_config(config: &Config) -> Result<Option<Self>, ConfigError> {
        let section = config.section("Postgres")?;
        if !section.is_set() {
            return Ok(None);
        }
        let url = section.get("Url")?;
        let url =
            url.ok_or_else(|| section.missing("Url", "an address such as `postgres://user:password@host/database`"))?;
        let default = PostgresOptions::default();
        let options = PostgresOptions::default()
            .with_schema(section.get_or("Schema", default.schema)?)
            .with_max_connections(section.get_or("MaxConnections", default.max_connections)?.max(1))
            .with_lease(section.interval("Lease", default.lease)?)
            .with_conversation_window(section.get_or("ConversationWindow", default.conversation_window)?);
        let options = match section.get::<PathBuf>("CaFile")? {
            Some(file) => options.with_ca_file(file),
            None => options,
        };
        let log = config.section("ConversationLog")?;
        Ok(Some(Self {
            url,
            options,
            logs_conversations: log.get_or("Enabled", log.is_set())?,
        }))
    }

    /// Looks at the database, and changes nothing. Returns a sentence that describes it.
    ///
    /// # Errors
    ///
    /// Returns an error as [`Postgres::connect`] does.
    pub async fn check(&self) -> Result<String, StoreError> {
        let (place, version) = Database::look(self.url.expose_secret(), &self.options).await?;
        let tables = match version {
            0 => "it has no tables yet".to_owned(),
            VERSION => format!("its tables have the version {VERSION}"),
            old => format!("its tables have the version {old}, and this program has {VERSION}"),
        };
        Ok(format!("{place}: {tables}"))
    }

    /// Connects to the database.
    ///
    /// # Errors
    ///
    /// Returns an error as [`Postgres::connect`] does.
    pub async fn connect(self) -> Result<Postgres, StoreError> {
        let stores = Postgres::connect_with(self.url.expose_secret(), self.options).await?;
        Ok(if self.logs_conversations {
            stores.with_conversation_log()
        } else {
            stores
        })
    }
}
