//! The policy of outgoing requests: which URLs, which addresses, and the limits.
//!
//! The operator's own URLs need no exception: the host of an endpoint, of an OpenAPI document's
//! URL and of SearXNG was named by the operator. Redirects from there are checked as usual. A
//! server that an OpenAPI document alone names, on another origin than its URL, is on the
//! internet and gets no credentials: the operator sets `Server` for both.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use rockbot_core::config::{Config, ConfigError};
use url::{Host, Url};

use super::EgressError;
use super::address::{AddressClass, class_of};

/// The ports of http and https.
const PORTS: [u16; 2] = [80, 443];

/// Maximum length of a URL, in bytes. Servers take less, and the HTTP client takes 64 KiB.
const MAX_URL: usize = 16 << 10;

/// Maximum length of a text that an error quotes, in characters.
const QUOTED: usize = 100;

/// The rules of requests that a model or a remote text can influence.
///
/// Such a request reaches the internet and nothing else: http and https on their own ports, no
/// user names, and no address of this machine, of a private network, of a link or of a tunnel to
/// one of these, in whatever notation. The checked address is the dialled address, and redirects
/// are checked again. Environment variables that name a proxy have no effect. Credentials never
/// follow a redirect to another origin, and nothing goes from https to http.
///
/// The section `Egress` of the settings, and the methods:
///
/// | setting | default |
/// |---|---|
/// | `AllowedHosts`: exceptions, see [`allow_host`](Self::allow_host) | none |
/// | `Timeout`: waiting for a response, with all its redirects | 20 seconds |
/// | `MaxBytes`: of a response, after decompression | 5 MiB |
/// | `MaxRedirects` | 5 |
///
/// ```
/// use rockbot_tools::egress::EgressPolicy;
///
/// let policy = EgressPolicy::new().allow_host("wiki.intern")?.allow_host("10.1.2.3:8080")?;
/// assert!(policy.check("http://wiki.intern/start").is_ok());
/// assert!(policy.check("http://10.1.2.3/").is_err(), "another port");
/// assert!(policy.check("http://0x7f.1/").is_err(), "this machine");
/// # Ok::<(), rockbot_tools::egress::EgressError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct EgressPolicy {
    exceptions: Vec<AllowedHost>,
    pub(crate) limits: Limits,
    /// Only tests can set it.
    allows_loopback: bool,
}

/// The limits of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) timeout: Duration,
    pub(crate) max_bytes: usize,
    pub(crate) max_redirects: usize,
}

/// A host that the operator named.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AllowedHost {
    host: String,
    /// `None`: the ports of http and https.
    port: Option<u16>,
}

impl Default for EgressPolicy {
    fn default() -> Self {
        Self {
            exceptions: Vec::new(),
            limits: Limits {
                timeout: Duration::from_secs(20),
                max_bytes: 5 << 20,
                max_redirects: 5,
            },
            allows_loopback: false,
        }
    }
}

impl fmt::Debug for EgressPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EgressPolicy")
            .field("exceptions", &self.exceptions)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl EgressPolicy {
    /// Creates the policy without exceptions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the section `Egress` of `config`.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let section = config.section("Egress")?;
        let defaults = Limits::of(&Self::default());
        let mut policy = Self::default()
            .with_timeout(section.interval("Timeout", defaults.timeout)?)
            .with_max_bytes(section.get_or("MaxBytes", defaults.max_bytes)?)
            .with_max_redirects(section.get_or("MaxRedirects", defaults.max_redirects)?);
        if let Some(setting) = section.setting("AllowedHosts") {
            for host in setting.read::<Vec<String>>()? {
                let invalid = |_| setting.invalid("a list of hosts such as `wiki.intern` or `10.1.2.3:8080`");
                policy = policy.allow_host(&host).map_err(invalid)?;
            }
        }
        Ok(policy)
    }

    /// Allows requests to `host`, also if it is this machine or in a private network: `wiki.intern` on the ports of http
    /// and https, `wiki.intern:8080` on this port. A host on the internet keeps its ports 80 and 443 in either case.
    /// Link-local addresses stay forbidden, since clouds serve credentials there.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is neither a host nor a host with a port.
    pub fn allow_host(mut self, host: &str) -> Result<Self, EgressError> {
        let not_a_host = || EgressError::NotAUrl { text: quoted(host) };
        let url = Url::parse(&format!("http://{host}/")).map_err(|_| not_a_host())?;
        let is_host = url.path() == "/" && url.query().is_none() && url.fragment().is_none() && !has_user(&url);
        let name = host_of(&url).filter(|_| is_host && !host.contains('/'));
        self.exceptions.push(AllowedHost {
            host: name.ok_or_else(not_a_host)?,
            port: url.port(),
        });
        Ok(self)
    }

    /// Allows requests to the host and port of a URL that the operator wrote.
    #[cfg(any(feature = "web", feature = "rest", feature = "a2a"))]
    pub(crate) fn allow_origin(self, url: &Url) -> Result<Self, EgressError> {
        let host = url.host_str().unwrap_or_default();
        match url.port() {
            Some(port) => self.allow_host(&format!("{host}:{port}")),
            None => self.allow_host(host),
        }
    }

    /// Sets the time that a request waits for servers, with all its redirects. Decoding does not
    /// count. Default 20 seconds.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.limits.timeout = timeout;
        self
    }

    /// Sets the maximum size of a response after decompression, in bytes. A longer response is cut.
    /// Default 5 MiB.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.limits.max_bytes = bytes;
        self
    }

    /// Sets the maximum number of redirects of a request. Default 5.
    #[must_use]
    pub fn with_max_redirects(mut self, redirects: usize) -> Self {
        self.limits.max_redirects = redirects;
        self
    }

    /// Allows all ports of loopback addresses, for servers that a test starts. No setting does this.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn with_loopback_for_tests(mut self) -> Self {
        self.allows_loopback = true;
        self
    }

    /// Checks a URL as far as that is possible without looking its host up.
    ///
    /// # Errors
    ///
    /// Returns the reason why a request would be refused before its host is looked up.
    pub fn check(&self, url: &str) -> Result<(), EgressError> {
        self.parse(url).map(drop)
    }

    /// Parses and checks a URL. Its host has no dot at its end.
    pub(crate) fn parse(&self, text: &str) -> Result<Url, EgressError> {
        let text = text.trim();
        if text.len() > MAX_URL {
            return Err(EgressError::UrlTooLong { max: MAX_URL });
        }
        let mut url = Url::parse(text).map_err(|_| EgressError::NotAUrl { text: quoted(text) })?;
        self.check_url(&mut url)?;
        Ok(url)
    }

    /// Checks a URL, and removes the dot at the end of its host and its fragment.
    pub(crate) fn check_url(&self, url: &mut Url) -> Result<(), EgressError> {
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = url.scheme().chars().take(QUOTED).collect();
            return Err(EgressError::Scheme { scheme });
        }
        if has_user(url) {
            return Err(EgressError::UserInfo);
        }
        url.set_fragment(None);
        if url.as_str().len() > MAX_URL {
            return Err(EgressError::UrlTooLong { max: MAX_URL });
        }
        let no_host = || EgressError::NotAUrl {
            text: "http://".to_owned(),
        };
        let host = host_of(url).ok_or_else(no_host)?;
        if url.host_str() != Some(&host) {
            url.set_host(Some(&host)).map_err(|_| no_host())?;
        }
        let is_named = self.is_exception(url);
        let port = url.port_or_known_default().unwrap_or(0);
        if !is_named && !self.allows_loopback && !PORTS.contains(&port) {
            return Err(EgressError::Port { host, port });
        }
        match url.host() {
            Some(Host::Ipv4(address)) => self.check_address(&host, address.into(), is_named),
            Some(Host::Ipv6(address)) => self.check_address(&host, address.into(), is_named),
            // Resolvers answer these names themselves, so they are refused without asking.
            Some(Host::Domain(name)) if is_local(name) && !self.allows_loopback && !is_named => {
                Err(EgressError::Internal { host })
            }
            _ => Ok(()),
        }
    }

    /// Checks an address of `host`. With `is_named`, the operator named the host with the port of the
    /// request, so that the address may be internal.
    pub(crate) fn check_address(&self, host: &str, address: IpAddr, is_named: bool) -> Result<(), EgressError> {
        let host = host.trim_end_matches('.');
        let is_test = self.allows_loopback && address.to_canonical().is_loopback();
        match class_of(address) {
            AddressClass::Public => Ok(()),
            AddressClass::Internal if is_test || is_named => Ok(()),
            AddressClass::Internal => Err(EgressError::Internal { host: host.to_owned() }),
            AddressClass::Forbidden => Err(EgressError::Forbidden { host: host.to_owned() }),
        }
    }

    /// Returns `true` if the operator named the host of a checked URL with its port.
    pub(crate) fn is_exception(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or(0);
        let mut named = self.exceptions.iter().filter(|allowed| allowed.host == host);
        named.any(|allowed| allowed.port.map_or(PORTS.contains(&port), |own| own == port))
    }

    /// Returns `true` if the operator named any host.
    pub(crate) fn has_exceptions(&self) -> bool {
        !self.exceptions.is_empty()
    }
}

impl Limits {
    fn of(policy: &EgressPolicy) -> Self {
        policy.limits
    }
}

/// Returns the host without a dot at its end, in lower case.
fn host_of(url: &Url) -> Option<String> {
    let host = url.host_str()?.trim_end_matches('.');
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

fn is_local(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

fn quoted(text: &str) -> String {
    // A query may contain a key.
    let text = text.split(['?', '#']).next().unwrap_or_default();
    text.chars().take(QUOTED).collect()
}
