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
use std::time::Duration;

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

/// Shortest and longest lease.
pub(super) const MIN_LEASE: Duration = Duration::from_secs(1);
pub(super) const MAX_LEASE: Duration = Duration::from_secs(5 * 60);

/// The known bridges by name.
#[derive(Debug, Default)]
pub(super) struct Directory {
    bridges: BTreeMap<String, KnownBridge>,
    /// Number of announced servers so far. Each announcement takes its number, so that the first
    /// announcement of a name is known.
    announced: u64,
}

#[derive(Debug, Default)]
struct KnownBridge {
    instances: BTreeMap<String, KnownInstance>,
    /// The process whose announcement counts. During a rolling update it is the process that began
    /// last.
    offering: String,
    servers: BTreeMap<String, KnownServer>,
}

#[derive(Debug)]
struct KnownInstance {
    revision: u64,
    expires: Instant,
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
    pub(super) fn announced(&mut self, lease: McpBridgeLease, servers: &[McpServerSummary], now: Instant) -> Change {
        if !self.has_room(&lease) {
            return Change::None;
        }
        let bridge = self.bridges.entry(lease.name).or_default();
        let before = bridge.instances.get(&lease.instance).map(|instance| instance.revision);
        if before.is_some_and(|before| before > lease.revision) {
            return Change::None;
        }
        let is_new = before.is_none();
        let instance = KnownInstance {
            revision: lease.revision,
            expires: expiry(lease.lease_ms, now),
        };
        bridge.instances.insert(lease.instance.clone(), instance);
        let is_orphaned = !bridge.instances.contains_key(&bridge.offering);
        // Of two processes that differ, the older process does not take the servers back with each
        // request for the index.
        if bridge.offering != lease.instance && !is_new && !is_orphaned && before == Some(lease.revision) {
            return Change::None;
        }
        bridge.offering = lease.instance;
        let mut known = std::mem::take(&mut bridge.servers);
        for summary in servers
            .iter()
            .filter(|summary| check_name(&summary.server_name).is_ok())
        {
            let key = summary.server_name.to_lowercase();
            if bridge.servers.len() >= MAX_SERVERS || bridge.servers.contains_key(&key) {
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
            bridge.servers.insert(key, server);
        }
        Change::Servers
    }

    fn has_room(&self, lease: &McpBridgeLease) -> bool {
        match self.bridges.get(&lease.name) {
            None => self.bridges.len() < MAX_BRIDGES,
            Some(bridge) => bridge.instances.contains_key(&lease.instance) || bridge.instances.len() < MAX_INSTANCES,
        }
    }

    /// Takes a sign of life, which renews the lease of a known process.
    pub(super) fn heartbeat(&mut self, lease: &McpBridgeLease, now: Instant) -> Change {
        let has_room = self.has_room(lease);
        let instance = self
            .bridges
            .get_mut(&lease.name)
            .and_then(|bridge| bridge.instances.get_mut(&lease.instance));
        match instance {
            Some(instance) if instance.revision > lease.revision => Change::None,
            Some(instance) => {
                instance.expires = expiry(lease.lease_ms, now);
                let is_stale = instance.revision < lease.revision;
                let bridge = self.bridges.get(&lease.name);
                let is_orphaned = bridge.is_some_and(|bridge| !bridge.instances.contains_key(&bridge.offering));
                if is_stale || is_orphaned {
                    Change::Ask
                } else {
                    Change::None
                }
            }
            // A process beyond the bounds is not asked, since its announcement would be refused.
            None if has_room => Change::Ask,
            None => Change::None,
        }
    }

    /// Takes the end of a process that has announced itself.
    pub(super) fn leaving(&mut self, leaving: &BridgeLeaving) -> Change {
        let Some(bridge) = self.bridges.get_mut(&leaving.name) else {
            return Change::None;
        };
        let was_known = bridge.instances.remove(&leaving.instance).is_some();
        if bridge.instances.is_empty() {
            self.bridges.remove(&leaving.name);
            return Change::Servers;
        }
        // The remaining processes may have other servers than the process whose announcement counted.
        if was_known && bridge.offering == leaving.instance {
            Change::Ask
        } else {
            Change::None
        }
    }

    /// Removes a process whose lease has run out, and returns the consequence; `None` if there is none.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Change> {
        let mut all = self.bridges.iter().flat_map(|(name, bridge)| {
            let instances = bridge.instances.iter();
            instances.filter_map(move |(id, instance)| (instance.expires <= now).then_some((name, id)))
        });
        let (name, instance) = all.next()?;
        let leaving = BridgeLeaving {
            name: name.clone(),
            instance: instance.clone(),
        };
        Some(self.leaving(&leaving))
    }

    /// Returns the end of the next lease.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let instances = self.bridges.values().flat_map(|bridge| bridge.instances.values());
        instances.map(|instance| instance.expires).min()
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
        for (bridge, known) in &self.bridges {
            for (key, server) in &known.servers {
                if owned.get(key).is_some_and(|(place, _)| *place < server.place) {
                    continue;
                }
                let of = OwnedServer {
                    bridge: bridge.clone(),
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

fn expiry(lease_ms: u64, now: Instant) -> Instant {
    now + Duration::from_millis(lease_ms).clamp(MIN_LEASE, MAX_LEASE)
}
