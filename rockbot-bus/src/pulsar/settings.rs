//! The settings of a Pulsar bus: the section `Pulsar` of a configuration.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rockbot_core::Secret;
use rockbot_core::config::{Config, ConfigError, Section};
use rockbot_core::context::Trust;
use rockbot_core::messaging::BusError;
use url::{Host, Url};

use crate::consumer::trust;

/// The settings of a [`PulsarBus`](super::PulsarBus).
///
/// The token is never printed, neither by `Debug` nor in errors and logs.
///
/// ```
/// use rockbot_bus::pulsar::PulsarSettings;
///
/// let settings = PulsarSettings::from_url("pulsar+ssl://broker.example")?;
/// assert_eq!((&*settings.host_name, settings.port, settings.tls), ("broker.example", 6651, true));
/// # Ok::<_, rockbot_core::messaging::BusError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PulsarSettings {
    /// Name or address of the broker. Default `localhost`.
    pub host_name: String,
    /// Port of the broker. Default 6650, with TLS 6651.
    pub port: u16,
    /// `true` for TLS, with the certificates of public authorities. Default `false`.
    pub tls: bool,
    /// File with further trusted certificates in PEM, for a private authority. Default `None`.
    pub ca_file: Option<PathBuf>,
    /// Token of this program for the broker. Default `None`.
    pub token: Option<Secret>,
    /// Tenant of the bus's own topics. Default `public`.
    pub tenant: String,
    /// Namespace of the bus's own topics. Default `default`. In either layout it has the dead letters
    /// of ephemeral subscriptions.
    pub namespace: String,
    /// Layout of topics. Default [`TopicLayout::Namespace`].
    pub topic_layout: TopicLayout,
    /// Minimum number of messages that the broker hands a consumer in advance. Default 10. A consumer
    /// that handles more than five messages concurrently gets twice its concurrency, up to its
    /// capacity.
    pub prefetch_count: u16,
    /// Time limit for the broker's confirm of a message, reconnections included. Default 30 s.
    pub publish_wait: Duration,
    /// Maximum size of a message in bytes, headers included. Default 5 MiB, as of the broker. A
    /// larger message that arrives becomes a dead letter.
    pub max_message_bytes: usize,
    /// Trust in the programs that can publish. Default [`Trust::User`]. With [`Trust::Untrusted`] a
    /// sender's claim to a principal counts for nothing.
    pub trust: Trust,
}

/// The layout of topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TopicLayout {
    /// All topics are persistent and in one namespace: `user.message` is
    /// `persistent://public/default/user.message`. The default.
    #[default]
    Namespace,
    /// The topics of TrustGraph: `tg.request.joke` is `non-persistent://tg/request/joke`, which its
    /// programs also call `request:tg:joke`. Only the class `flow` is persistent. Messages carry
    /// their headers as plain properties.
    TrustGraph,
}

impl Default for PulsarSettings {
    fn default() -> Self {
        Self {
            host_name: "localhost".to_owned(),
            port: 6650,
            tls: false,
            ca_file: None,
            token: None,
            tenant: "public".to_owned(),
            namespace: "default".to_owned(),
            topic_layout: TopicLayout::Namespace,
            prefetch_count: 10,
            publish_wait: Duration::from_secs(30),
            max_message_bytes: 5 * 1024 * 1024,
            trust: Trust::User,
        }
    }
}

impl PulsarSettings {
    /// Creates the default settings: a broker on this machine.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates settings from a URL such as `pulsar://host:6650`, or `pulsar+ssl://host:6651` for TLS.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is no such URL. The error does not quote it, since it may hold a
    /// secret.
    pub fn from_url(url: &str) -> Result<Self, BusError> {
        Self::new().with_url(url)
    }

    /// Sets host, port and TLS from a URL, and keeps the rest.
    ///
    /// # Errors
    ///
    /// Returns an error as [`PulsarSettings::from_url`] does.
    pub fn with_url(mut self, url: &str) -> Result<Self, BusError> {
        let (host, port, tls) = address(url).ok_or_else(|| BusError::Provider {
            context: "the URL of the broker is invalid: write `pulsar://host:port`, and the token as a setting"
                .to_owned(),
            source: "it is no Pulsar URL of one broker".into(),
        })?;
        (self.host_name, self.port, self.tls) = (host, port, tls);
        Ok(self)
    }

    /// Sets the layout of topics, such as [`TopicLayout::TrustGraph`] to share a broker with
    /// TrustGraph.
    #[must_use]
    pub fn with_topic_layout(mut self, layout: TopicLayout) -> Self {
        self.topic_layout = layout;
        self
    }

    /// Reads the section `Pulsar`. Returns `None` if nothing is set there: the host then has no such
    /// broker. Relative paths are below `base`.
    ///
    /// # Errors
    ///
    /// Returns an error that names the setting, never its value, if a setting is invalid.
    pub fn read(config: &Config, base: &Path) -> Result<Option<Self>, ConfigError> {
        let section = config.section("Pulsar")?;
        if !section.is_set() {
            return Ok(None);
        }
        let default = Self::default();
        let tls = section.get_or("Tls", default.tls)?;
        Ok(Some(Self {
            host_name: section.get_or("HostName", default.host_name)?,
            port: section.get_or("Port", if tls { 6651 } else { default.port })?,
            tls,
            ca_file: section.get::<PathBuf>("CaFile")?.map(|file| base.join(file)),
            token: section.get("Token")?,
            tenant: section.get_or("Tenant", default.tenant)?,
            namespace: section.get_or("Namespace", default.namespace)?,
            topic_layout: layout(&section)?,
            prefetch_count: section.get_or("PrefetchCount", default.prefetch_count)?,
            publish_wait: section.interval("PublishWait", default.publish_wait)?,
            max_message_bytes: section.get_or("MaxMessageBytes", default.max_message_bytes)?,
            trust: trust(&section, default.trust)?,
        }))
    }

    /// Returns the URL of the broker, which holds no secret.
    pub(super) fn url(&self) -> String {
        let scheme = if self.tls { "pulsar+ssl" } else { "pulsar" };
        if self.host_name.contains(':') {
            format!("{scheme}://[{}]:{}", self.host_name, self.port)
        } else {
            format!("{scheme}://{}:{}", self.host_name, self.port)
        }
    }
}

/// Returns host, port and TLS of a URL that has nothing else.
fn address(url: &str) -> Option<(String, u16, bool)> {
    let url = Url::parse(url).ok()?;
    let tls = match url.scheme() {
        "pulsar" => false,
        "pulsar+ssl" => true,
        _ => return None,
    };
    let has_more = !url.username().is_empty()
        || url.password().is_some()
        || !matches!(url.path(), "" | "/")
        || url.query().is_some()
        || url.fragment().is_some();
    let host = match url.host()? {
        Host::Domain(name) => name.to_owned(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    };
    let port = url.port().unwrap_or(if tls { 6651 } else { 6650 });
    (!has_more && !host.is_empty()).then_some((host, port, tls))
}

fn layout(section: &Section<'_>) -> Result<TopicLayout, ConfigError> {
    let Some(setting) = section.setting("TopicLayout") else {
        return Ok(TopicLayout::default());
    };
    match setting.read::<String>()?.to_ascii_lowercase().as_str() {
        "namespace" => Ok(TopicLayout::Namespace),
        "trustgraph" => Ok(TopicLayout::TrustGraph),
        _ => Err(setting.invalid("`namespace` or `trustgraph`")),
    }
}
