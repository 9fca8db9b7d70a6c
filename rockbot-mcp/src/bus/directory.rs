//! The bridges that an agent knows, with their leases and servers: a state that a clock and
//! messages change, without I/O.
//!
//! A server on the bus belongs to the bridge that announced it first, while its lease lives:
//! another program that names it takes over no call. An announcement counts only under the topic
//! of its own bridge, since brokers grant rights to publish by topic. Bridges take the places for
//! servers in turn, so a bridge with many servers leaves a share to the others, and 32 places are
//! the agent's own.
//!
//! The effects of a bridge's tools count only if the operators of both hosts vouch for the server.

use std::collections::BTreeMap;

use rockbot_core::messaging::lease::{Lease, LeaseTable, Withdrawal};
use tokio::time::Instant;

use super::wire::BridgeLeaving;
use crate::config::{MAX_SERVERS, check_name};
use crate::index_event::{McpBridgeLease, McpServerSummary};

/// Maximum number of names of bridges.
const MAX_BRIDGES: usize = 64;

/// Maximum number of processes of one name.
const MAX_INSTANCES: usize = 64;

/// Maximum length of a fingerprint, in bytes.
const MAX_FINGERPRINT: usize = 128;

/// The known bridges by name.
#[derive(Debug)]
pub(super) struct Directory {
    /// The servers of each bridge, by their keys.
    bridges: LeaseTable<BTreeMap<String, KnownServer>>,
    /// Number of announced servers so far. Each announcement takes its number, so that the first
    /// announcement of a name is known.
    announced: u64,
}

impl Default for Directory {
    fn default() -> Self {
        Self {
            bridges: LeaseTable::new(MAX_BRIDGES, MAX_INSTANCES),
            announced: 0,
        }
    }
}

#[derive(Debug)]
struct KnownServer {
    name: String,
    fingerprint: String,
    /// The place among all announcements.
    place: u64,
}

/// A server, and the bridge that owns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnedServer {
    pub(super) bridge: String,
    pub(super) name: String,
    pub(super) fingerprint: String,
}

/// The consequence of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The servers stay as they are.
    None,
    /// A bridge is known by a sign of life only, or has changed: it is asked for its servers.
    Ask,
    /// The servers may be others now.
    Servers,
}

impl Directory {
    /// Takes an announcement of all servers of a bridge.
    pub(super) fn announced(&mut self, lease: &McpBridgeLease, servers: &[McpServerSummary], now: Instant) -> Change {
        let Ok(Some(offered)) = self.bridges.announce(lease_of(lease), now) else {
            return Change::None;
        };
        let mut known = std::mem::take(offered);
        for summary in servers
            .iter()
            .filter(|summary| check_name(&summary.server_name).is_ok())
        {
            let key = summary.server_name.to_lowercase();
            if offered.len() >= MAX_SERVERS || offered.contains_key(&key) {
                continue;
            }
            let place = known.remove(&key).map(|server| server.place);
            let place = place.unwrap_or_else(|| {
                self.announced += 1;
                self.announced
            });
            let server = KnownServer {
                name: summary.server_name.clone(),
                fingerprint: fingerprint_of(summary),
                place,
            };
            offered.insert(key, server);
        }
        Change::Servers
    }

    /// Takes a sign of life, which renews the lease of a known process.
    pub(super) fn heartbeat(&mut self, lease: &McpBridgeLease, now: Instant) -> Change {
        if self.bridges.renew(lease_of(lease), now) {
            Change::Ask
        } else {
            Change::None
        }
    }

    /// Takes the end of a process that has announced itself.
    pub(super) fn leaving(&mut self, leaving: &BridgeLeaving) -> Change {
        change_of(self.bridges.withdraw(&leaving.name, &leaving.instance))
    }

    /// Removes a process whose lease has run out, and returns the consequence; `None` if there is none.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Change> {
        let (_, withdrawal) = self.bridges.expire(now)?;
        Some(change_of(withdrawal))
    }

    /// Returns the end of the next lease.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.bridges.next_expiry()
    }

    /// Returns at most `places` servers by their keys. The first bridge to announce a server owns it
    /// as long as the bridge lives and has the server. Servers whose key `is_own` accepts are left
    /// out.
    ///
    /// Bridges take places in turn, so that a bridge with many servers leaves room for the servers of
    /// all others.
    pub(super) fn servers(&self, places: usize, is_own: impl Fn(&str) -> bool) -> BTreeMap<String, OwnedServer> {
        let mut of_bridges: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for (key, (place, server)) in self.owned().into_iter().filter(|(key, _)| !is_own(key)) {
            of_bridges
                .entry(server.bridge.clone())
                .or_default()
                .push((place, key, server));
        }
        let ranked = of_bridges.into_values().flat_map(|mut servers| {
            servers.sort_by_key(|(place, ..)| *place);
            servers.into_iter().enumerate()
        });
        let mut ranked: Vec<_> = ranked.collect();
        ranked.sort_by_key(|(rank, (place, ..))| (*rank, *place));
        let placed = ranked.into_iter().take(places);
        placed.map(|(_, (_, key, server))| (key, server)).collect()
    }

    /// Returns all servers by their keys, each with its place among all announcements.
    fn owned(&self) -> BTreeMap<String, (u64, OwnedServer)> {
        let mut owned: BTreeMap<String, (u64, OwnedServer)> = BTreeMap::new();
        for (bridge, servers) in self.bridges.offers() {
            for (key, server) in servers {
                if owned.get(key).is_some_and(|(place, _)| *place < server.place) {
                    continue;
                }
                let of = OwnedServer {
                    bridge: bridge.to_owned(),
                    name: server.name.clone(),
                    fingerprint: server.fingerprint.clone(),
                };
                owned.insert(key.clone(), (server.place, of));
            }
        }
        owned
    }
}

/// Returns the fingerprint of a server. A fingerprint that is too long is replaced by an empty
/// text.
fn fingerprint_of(summary: &McpServerSummary) -> String {
    let fingerprint = summary.fingerprint.as_deref();
    fingerprint
        .filter(|text| text.len() <= MAX_FINGERPRINT)
        .unwrap_or_default()
        .to_owned()
}

fn lease_of(lease: &McpBridgeLease) -> Lease<'_> {
    Lease::new(&lease.name, &lease.instance, lease.revision, lease.lease_ms)
}

fn change_of(withdrawal: Withdrawal) -> Change {
    match withdrawal {
        Withdrawal::Gone => Change::Servers,
        Withdrawal::Ask => Change::Ask,
        _ => Change::None,
    }
}
