//! The names that clients may call a server by, and the pages that may call it.

use std::net::IpAddr;

use hyper::header::{HOST, ORIGIN};
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Uri};

/// The names of this machine for itself.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The names in the header `Host` and the origins of pages that a server accepts, besides those of
/// this machine.
///
/// A page that a browser shows may reach a server of the same machine, under a name that leads there
/// (DNS rebinding), and a browser sends what a page of another site asks it to. So a server checks
/// both headers of every request.
#[derive(Debug, Default)]
pub struct AcceptedNames {
    /// Names in the header `Host`, without a port; `*` accepts all.
    hosts: Vec<String>,
    /// Origins of pages, such as `https://app.example.com`.
    origins: Vec<String>,
}

/// A header that names no name which the server accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownName {
    /// The header `Host` names another server.
    Host,
    /// The page is from an origin that may not call.
    Origin,
}

impl AcceptedNames {
    /// Accepts these names in the header `Host`, without a port; `*` accepts all.
    pub fn allow_hosts(&mut self, hosts: impl IntoIterator<Item = String>) {
        self.hosts.extend(hosts);
    }

    /// Accepts pages of these origins, such as `https://app.example.com`.
    pub fn allow_origins(&mut self, origins: impl IntoIterator<Item = String>) {
        self.origins.extend(origins);
    }

    /// Accepts the address of the listener, and the host of the public URL, as names of this host.
    pub fn add(&mut self, address: Option<IpAddr>, url: &str) {
        let address = address.map(|address| match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        });
        let authority = url.split("://").nth(1).and_then(|rest| rest.split('/').next());
        self.hosts.extend(address);
        self.hosts
            .extend(authority.map(|authority| without_port(authority).to_owned()));
    }

    /// Checks that a request names this host, and comes from no page of another host.
    ///
    /// # Errors
    ///
    /// Returns the header that names another one.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), UnknownName> {
        let header = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        // In HTTP/2 the name is a part of the address.
        let host = header(HOST).or_else(|| uri.authority().map(Authority::as_str));
        let accepts_all = self.hosts.iter().any(|host| host == "*");
        let is_known = |host: &str| {
            let host = without_port(host);
            LOCAL.contains(&host) || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
        };
        let is_host = host.is_some_and(is_known);
        if !accepts_all && !is_host {
            return Err(UnknownName::Host);
        }
        match header(ORIGIN) {
            // A page of this server itself, under a name that is known to be this server's.
            Some(origin) if is_host && origin.split("://").nth(1) == host => Ok(()),
            Some(origin) if !self.is_origin(origin) => Err(UnknownName::Origin),
            _ => Ok(()),
        }
    }

    fn is_origin(&self, origin: &str) -> bool {
        let local = origin.strip_prefix("http://").map(without_port);
        local.is_some_and(|host| LOCAL.contains(&host)) || self.origins.iter().any(|known| known == origin)
    }
}

/// Returns a host without the port behind it.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}
