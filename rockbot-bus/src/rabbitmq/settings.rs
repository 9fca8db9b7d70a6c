//! The settings of a RabbitMQ bus: the section `RabbitMq` of a configuration.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use rockbot_core::config::{Config, ConfigError, Section};
use rockbot_core::context::Trust;
use rockbot_core::messaging::BusError;
use rockbot_core::{ExposeSecret as _, Secret};

use super::layout::ExchangeLayout;
use crate::consumer::trust;

/// Seconds of silence after which a peer is asked for a sign of life; after twice that the
/// connection is lost.
const HEARTBEAT_SECONDS: u16 = 10;

/// The settings of a [`RabbitMqBus`](super::RabbitMqBus). Settings whose comment says nothing
/// else are the original's, with its defaults.
///
/// The password is never printed, neither by `Debug` nor in errors and logs.
///
/// ```
/// use rockbot_bus::rabbitmq::RabbitMqSettings;
///
/// let settings = RabbitMqSettings::from_url("amqps://agent:secret@broker.example/team")?;
/// assert_eq!((&*settings.host_name, settings.port, settings.tls), ("broker.example", 5671, true));
/// assert_eq!(settings.virtual_host, "team");
/// assert!(!format!("{settings:?}").contains("secret"));
/// # Ok::<_, rockbot_core::messaging::BusError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RabbitMqSettings {
    /// Name or address of the broker. Default `localhost`.
    pub host_name: String,
    /// Port of the broker. Default 5672, with TLS 5671.
    pub port: u16,
    /// Virtual host. Default `/`.
    pub virtual_host: String,
    /// Name of the user. Default `guest`.
    pub user_name: String,
    /// Password of the user. Default `guest`.
    pub password: Secret,
    /// Name of the topic exchange that carries all messages. Default `rockbot`.
    pub exchange_name: String,
    /// Name of the topic exchange for dead letters. Default `rockbot.dlx`.
    pub dead_letter_exchange_name: String,
    /// Layout of the exchanges. Default [`ExchangeLayout::Topic`], the original's.
    pub exchange_layout: ExchangeLayout,
    /// Prefix of the names of queues, followed by a dot. Default `rockbot`, as in the original.
    pub queue_prefix: String,
    /// `true` if exchanges, queues and messages survive a restart of the broker. Default `true`.
    pub durable: bool,
    /// Minimum number of unsettled messages that the broker hands a consumer in advance. Default 10.
    /// A consumer that handles more than five messages concurrently gets twice its concurrency, up to
    /// its capacity.
    pub prefetch_count: u16,
    /// `true` for TLS, with the certificates that the operating system trusts. Default `false`.
    pub tls: bool,
    /// File with further trusted certificates in PEM, for a private authority. Default `None`.
    pub ca_file: Option<PathBuf>,
    /// `true` for replicated quorum queues, which also bound the deliveries of a message that ends
    /// its consumer's process. Default `false`: the original's classic queues. A queue cannot change
    /// its kind. With RabbitMQ from version 4 on, queues of dead letters that an earlier version of
    /// this crate has declared need the policy `delivery-limit: -1`, or the broker drops a letter
    /// that was inspected 20 times; a warning names them.
    pub quorum_queues: bool,
    /// Maximum number of messages that wait in a queue. Beyond it the broker refuses further
    /// messages, and publishing fails with [`BusError::Rejected`]. Default `None`: no maximum, as in
    /// the original.
    pub max_queue_length: Option<u32>,
    /// Number of queues that share the messages of a subscription with a partition rule: the maximum
    /// number of processes that share its work. Default 8. All processes must agree.
    pub partitions: u16,
    /// Time that an ephemeral subscription outlives its connection, so that replies that arrive while
    /// the connection is down are kept. Default `None`: its queue is exclusive, and ends with the
    /// connection.
    pub reply_queue_expiry: Option<Duration>,
    /// Time limit for the broker's confirm of a message, and for any other operation, reconnections
    /// included. Default 30 s.
    pub publish_wait: Duration,
    /// Maximum size of a message in bytes, headers included. Default 16 MiB. A larger message that
    /// arrives becomes a dead letter.
    pub max_message_bytes: usize,
    /// Trust in the programs that can publish. Default [`Trust::User`], since the broker
    /// authenticates them. With [`Trust::Untrusted`] a sender's claim to a principal counts for
    /// nothing.
    pub trust: Trust,
}

impl Default for RabbitMqSettings {
    fn default() -> Self {
        Self {
            host_name: "localhost".to_owned(),
            port: 5672,
            virtual_host: "/".to_owned(),
            user_name: "guest".to_owned(),
            password: Secret::from("guest"),
            exchange_name: "rockbot".to_owned(),
            dead_letter_exchange_name: "rockbot.dlx".to_owned(),
            exchange_layout: ExchangeLayout::Topic,
            queue_prefix: "rockbot".to_owned(),
            durable: true,
            prefetch_count: 10,
            tls: false,
            ca_file: None,
            quorum_queues: false,
            max_queue_length: None,
            partitions: 8,
            reply_queue_expiry: None,
            publish_wait: Duration::from_secs(30),
            max_message_bytes: 16 * 1024 * 1024,
            trust: Trust::User,
        }
    }
}

impl RabbitMqSettings {
    /// Creates the default settings: a broker on this machine.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates settings from a URL such as `amqp://user:password@host:5672/virtual-host`, or
    /// `amqps://` for TLS.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is no such URL. The error does not quote it, since it may hold a
    /// password.
    pub fn from_url(url: &str) -> Result<Self, BusError> {
        Self::new().with_url(url)
    }

    /// Sets host, port, virtual host, user, password and TLS from a URL, and keeps the rest.
    ///
    /// # Errors
    ///
    /// Returns an error as [`RabbitMqSettings::from_url`] does.
    pub fn with_url(mut self, url: &str) -> Result<Self, BusError> {
        let uri: AMQPUri = url.parse().map_err(|_| BusError::Provider {
            context: "the URL of the broker is invalid: write `amqp://user:password@host:port/virtual-host`".to_owned(),
            source: "it is no AMQP URL".into(),
        })?;
        let AMQPAuthority { userinfo, host, port } = uri.authority;
        self.tls = uri.scheme == AMQPScheme::AMQPS;
        // `amqp://host/` names the virtual host of no name, which no broker has; its writer means the
        // default one.
        let vhost = Some(uri.vhost).filter(|name| !name.is_empty());
        (self.host_name, self.port) = (host, port);
        self.virtual_host = vhost.unwrap_or_else(|| "/".to_owned());
        (self.user_name, self.password) = (userinfo.username, Secret::from(userinfo.password));
        Ok(self)
    }

    /// Sets the layout of the exchanges, such as [`ExchangeLayout::Fanout`] to share a broker with
    /// TrustGraph.
    #[must_use]
    pub fn with_exchange_layout(mut self, layout: ExchangeLayout) -> Self {
        self.exchange_layout = layout;
        self
    }

    /// Reads the section `RabbitMq`. Returns `None` if nothing is set there: the host then has no
    /// broker. Relative paths are below `base`.
    ///
    /// # Errors
    ///
    /// Returns an error that names the setting, never its value, if a setting is invalid.
    pub fn read(config: &Config, base: &Path) -> Result<Option<Self>, ConfigError> {
        let section = config.section("RabbitMq")?;
        if !section.is_set() {
            return Ok(None);
        }
        let default = Self::default();
        let tls = section.get_or("Tls", default.tls)?;
        Ok(Some(Self {
            host_name: section.get_or("HostName", default.host_name)?,
            port: section.get_or("Port", if tls { 5671 } else { default.port })?,
            virtual_host: section.get_or("VirtualHost", default.virtual_host)?,
            user_name: section.get_or("UserName", default.user_name)?,
            password: section.get_or("Password", default.password)?,
            exchange_name: section.get_or("ExchangeName", default.exchange_name)?,
            dead_letter_exchange_name: section.get_or("DeadLetterExchangeName", default.dead_letter_exchange_name)?,
            exchange_layout: layout(&section)?,
            queue_prefix: section.get_or("QueuePrefix", default.queue_prefix)?,
            durable: section.get_or("Durable", default.durable)?,
            prefetch_count: section.get_or("PrefetchCount", default.prefetch_count)?,
            tls,
            ca_file: section.get::<PathBuf>("CaFile")?.map(|file| base.join(file)),
            quorum_queues: section.get_or("QuorumQueues", default.quorum_queues)?,
            max_queue_length: section.get("MaxQueueLength")?,
            partitions: section.get_or("Partitions", default.partitions)?.max(1),
            reply_queue_expiry: section.get("ReplyQueueExpiry")?,
            publish_wait: section.interval("PublishWait", default.publish_wait)?,
            max_message_bytes: section.get_or("MaxMessageBytes", default.max_message_bytes)?,
            trust: trust(&section, default.trust)?,
        }))
    }

    /// Returns the address of the broker for messages: without user and password.
    pub(super) fn address(&self) -> String {
        format!("{}:{}{}", self.host_name, self.port, self.vhost_path())
    }

    /// Returns the URI for the client, which holds the password: it must not be printed.
    pub(super) fn uri(&self) -> AMQPUri {
        AMQPUri {
            scheme: if self.tls { AMQPScheme::AMQPS } else { AMQPScheme::AMQP },
            authority: AMQPAuthority {
                userinfo: AMQPUserInfo {
                    username: self.user_name.clone(),
                    password: self.password.expose_secret().to_owned(),
                },
                host: self.host_name.clone(),
                port: self.port,
            },
            vhost: self.virtual_host.clone(),
            query: AMQPQueryString {
                heartbeat: Some(HEARTBEAT_SECONDS),
                ..AMQPQueryString::default()
            },
        }
    }

    fn vhost_path(&self) -> String {
        match self.virtual_host.as_str() {
            "/" => String::new(),
            name => format!("/{name}"),
        }
    }
}

fn layout(section: &Section<'_>) -> Result<ExchangeLayout, ConfigError> {
    let Some(setting) = section.setting("ExchangeLayout") else {
        return Ok(ExchangeLayout::default());
    };
    match setting.read::<String>()?.to_ascii_lowercase().as_str() {
        "topic" => Ok(ExchangeLayout::Topic),
        "fanout" => Ok(ExchangeLayout::Fanout),
        _ => Err(setting.invalid("`topic` or `fanout`")),
    }
}
