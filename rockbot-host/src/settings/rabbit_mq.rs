//! The section `RabbitMq`.

use rockbot_core::Secret;
use rockbot_core::config::{Config, ConfigError};

/// How to reach the message broker.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RabbitMqSettings {
    /// `HostName`. Default `localhost`.
    pub host_name: String,
    /// `Port`. Default 5672.
    pub port: u16,
    /// `UserName`. Default `guest`, whom a broker lets in from its own machine only.
    pub user_name: String,
    /// `Password`. Default `guest`.
    pub password: Secret,
    /// `VirtualHost`. Default `/`.
    pub virtual_host: String,
}

impl RabbitMqSettings {
    pub(super) fn read(config: &Config) -> Result<Option<Self>, ConfigError> {
        let section = config.section("RabbitMq")?;
        let settings = Self {
            host_name: section.get_or("HostName", "localhost".to_owned())?,
            port: section.get_or("Port", 5672)?,
            user_name: section.get_or("UserName", "guest".to_owned())?,
            password: section.get_or("Password", Secret::from("guest"))?,
            virtual_host: section.get_or("VirtualHost", "/".to_owned())?,
        };
        Ok(section.is_set().then_some(settings))
    }
}
