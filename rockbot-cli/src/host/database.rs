//! The database of a program: the stores of the section `Postgres`.

use rockbot::Principal;
use rockbot::agent::AgentHostBuilder;
use rockbot::config::Config;
use rockbot::prelude::*;
#[cfg(feature = "postgres")]
use rockbot::store::{Postgres, PostgresSettings};

/// The stores of a database, if the settings name one.
#[derive(Debug)]
pub struct Database {
    #[cfg(feature = "postgres")]
    stores: Option<Postgres>,
}

#[cfg(feature = "postgres")]
impl Database {
    /// Connects to the database of the settings.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting is invalid, or if the database cannot be opened.
    pub async fn connect(config: &Config) -> Result<Self, BoxError> {
        let stores = match PostgresSettings::from_config(config)? {
            Some(settings) => Some(settings.connect().await?),
            None => None,
        };
        Ok(Self { stores })
    }

    /// Checks the settings, and adds nothing to an agent.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting is invalid.
    pub fn unconnected(config: &Config) -> Result<Self, BoxError> {
        PostgresSettings::from_config(config)?;
        Ok(Self { stores: None })
    }

    /// Returns the principals that have data in the database.
    ///
    /// # Errors
    ///
    /// Returns an error if the settings name no database, or if it cannot be read.
    pub async fn principals(&self) -> Result<Vec<Principal>, BoxError> {
        match &self.stores {
            Some(stores) => Ok(stores.principals().await?),
            None => Err("no database is set: set `Postgres.Url`, or ROCKBOT_POSTGRES__URL in the environment".into()),
        }
    }

    /// Adds the stores to the agent.
    pub fn add_to(self, builder: AgentHostBuilder) -> AgentHostBuilder {
        self.stores.into_iter().fold(builder, AgentHostBuilder::add)
    }
}

#[cfg(not(feature = "postgres"))]
impl Database {
    /// Refuses a database: the program was built without it.
    ///
    /// # Errors
    ///
    /// Returns an error if the settings name a database.
    #[expect(clippy::unused_async, reason = "there is no database")]
    pub async fn connect(config: &Config) -> Result<Self, BoxError> {
        Self::unconnected(config)
    }

    /// Refuses a database: the program was built without it.
    ///
    /// # Errors
    ///
    /// Returns an error if the settings name a database.
    pub fn unconnected(config: &Config) -> Result<Self, BoxError> {
        if config.section("Postgres")?.is_set() {
            return Err("`Postgres` is set, and it is not built in: turn the feature `postgres` on".into());
        }
        Ok(Self {})
    }

    /// Refuses a database: the program was built without it.
    ///
    /// # Errors
    ///
    /// Returns an error each time.
    #[expect(clippy::unused_async, reason = "there is no database")]
    pub async fn principals(&self) -> Result<Vec<Principal>, BoxError> {
        Err("no database is built in: turn the feature `postgres` on".into())
    }

    /// Adds nothing to the agent.
    pub fn add_to(self, builder: AgentHostBuilder) -> AgentHostBuilder {
        builder
    }
}
