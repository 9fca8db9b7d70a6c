//! The section `RabbitMq`.

use rockbot_core::Secret;
use rockbot_core::config::{Config, ConfigError};

/// The address and the credentials of the message broker. They have no effect yet.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RabbitMqSettings {
    /// `HostName`: the broker's host. Default `localhost`.
    pub host_name: String,
    /// `Port`: the broker's AMQP port. Default 5672.
    pub port: u16,
    /// `UserName`: the user. Default `guest`, which a broker accepts from its own machine only.
    pub user_name: String,
    /// `Password`: the password, redacted in logs. Default `guest`.
    pub password: Secret,
    /// `VirtualHost`: the virtual host. Default `/`.
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
