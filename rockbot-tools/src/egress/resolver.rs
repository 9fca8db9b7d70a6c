//! Looking hosts up, with a check of every address before an address is dialled.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::EgressPolicy;

/// A source of the addresses of a host.
#[async_trait]
pub(crate) trait Lookup: fmt::Debug + Send + Sync + 'static {
    /// Returns the addresses of `host`.
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the operating system.
#[derive(Debug)]
pub(crate) struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((host, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// The resolver of the HTTP client. The client dials the returned addresses and no others.
#[derive(Debug)]
pub(super) struct CheckedResolver {
    pub(super) policy: Arc<EgressPolicy>,
    /// `true` for requests to hosts that the operator named with their ports. A resolver is not told
    /// the port.
    pub(super) is_named: bool,
    pub(super) lookup: Arc<dyn Lookup>,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.policy.clone();
        let lookup = self.lookup.clone();
        let is_named = self.is_named;
        Box::pin(async move {
            let found = lookup.lookup(name.as_str()).await?;
            // All of them: a host with one internal address is not trusted with the others.
            for address in &found {
                policy.check_address(name.as_str(), *address, is_named)?;
            }
            let addresses = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}
