//! The conditions for a client to connect: the name that it calls this host, the page that sends
//! it, its key.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HOST, ORIGIN};
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Uri};

use super::caller::{A2aCaller, Callers};
use super::card::KEY_HEADER;

/// The names of this machine for itself.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The conditions for a client to connect.
#[derive(Debug, Default)]
pub(super) struct Admission {
    pub(super) callers: Callers,
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<String>,
}

impl Admission {
    /// Accepts the address of the listener, and the host of the public URL, as names of this host.
    pub(super) fn add_names(&mut self, address: Option<IpAddr>, url: &str) {
        let address = address.map(|address| match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        });
        let authority = url.split("://").nth(1).and_then(|rest| rest.split('/').next());
        self.hosts.extend(address);
        self.hosts
            .extend(authority.map(|authority| without_port(authority).to_owned()));
    }

    /// Reports whether a request names this host, and comes from no page of another host: a page
    /// that a browser shows may reach an agent of the same machine, under a name that leads there
    /// (DNS rebinding).
    pub(super) fn check_names(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
        let header = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        // In HTTP/2 the name is a part of the address.
        let host = header(HOST).or_else(|| uri.authority().map(Authority::as_str));
        let accepts_all = self.hosts.iter().any(|host| host == "*");
        let is_known = |host: &str| {
            let host = without_port(host);
            LOCAL.contains(&host) || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
        };
        if !accepts_all && !host.is_some_and(is_known) {
            return Err(
                "the header `Host` names another server: the operator allows names by `A2aServer.AllowedHosts`",
            );
        }
        match header(ORIGIN) {
            Some(origin) if !self.is_origin(origin) => {
                Err("pages of this origin may not call: the operator allows some by `A2aServer.AllowedOrigins`")
            }
            _ => Ok(()),
        }
    }

    fn is_origin(&self, origin: &str) -> bool {
        let local = origin.strip_prefix("http://").map(without_port);
        local.is_some_and(|host| LOCAL.contains(&host)) || self.origins.iter().any(|known| known == origin)
    }

    /// Returns the caller of a request.
    pub(super) fn caller(&self, headers: &HeaderMap) -> Option<Arc<A2aCaller>> {
        let text = |value: &hyper::header::HeaderValue| value.to_str().ok().map(str::to_owned);
        let bearer = headers.get(AUTHORIZATION).and_then(text).and_then(|value| {
            let (scheme, key) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| key.trim().to_owned())
        });
        let key = bearer.or_else(|| headers.get(KEY_HEADER).and_then(text));
        self.callers.find(key.as_deref())
    }
}

/// Returns a host without the port behind it.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}
