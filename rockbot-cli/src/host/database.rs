//! The database of a program: the stores of the section `Postgres`, and the permits for models that
//! its processes share.

use rockbot::Principal;
use rockbot::agent::AgentHostBuilder;
#[cfg(feature = "postgres")]
use rockbot::chat::SharedPermits;
use rockbot::config::Config;
use rockbot::prelude::*;
#[cfg(feature = "postgres")]
use rockbot::store::{Postgres, PostgresSettings};

/// The stores of a database, if the settings name one.
///
/// Beside the settings of `PostgresSettings`, `Postgres.ModelCalls` is the maximum number of model
/// calls at a time, of all processes of the database together. No limit by default.
#[derive(Debug)]
pub struct Database {
    #[cfg(feature = "postgres")]
    stores: Option<Postgres>,
    /// Maximum number of model calls at a time, of all processes.
    #[cfg(feature = "postgres")]
    model_calls: Option<usize>,
}

#[cfg(feature = "postgres")]
impl Database {
    /// Connects to the database of the settings.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting is invalid, or if the database cannot be opened.
    pub async fn connect(config: &Config) -> Result<Self, BoxError> {
        let settings = PostgresSettings::from_config(config)?;
        let model_calls = config.section("Postgres")?.get("ModelCalls")?;
        let stores = match settings {
            Some(settings) => Some(settings.connect().await?),
            None => None,
        };
        Ok(Self { stores, model_calls })
    }

    /// Checks the settings, and adds nothing to an agent.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting is invalid.
    pub fn unconnected(config: &Config) -> Result<Self, BoxError> {
        PostgresSettings::from_config(config)?;
        let model_calls = config.section("Postgres")?.get("ModelCalls")?;
        Ok(Self {
            stores: None,
            model_calls,
        })
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

    /// Adds the stores to the agent, and with the setting `Postgres.ModelCalls` the permits that its
    /// processes share.
    pub fn add_to(self, builder: AgentHostBuilder) -> AgentHostBuilder {
        let Some(stores) = self.stores else { return builder };
        let builder = match self.model_calls {
            Some(most) => builder.chat_layer(SharedPermits::new(stores.shared_documents.clone(), most)),
            None => builder,
        };
        builder.add(stores)
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
