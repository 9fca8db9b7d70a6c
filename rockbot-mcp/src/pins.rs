//! The pinned definitions of servers' tools: trust on first use.
//!
//! A server could offer a harmless tool until it is trusted, and then change its description or
//! its schema (a *rug pull*). So the digest of each definition is kept. A tool whose definition
//! has changed is held back until the operator [accepts](crate::McpServers::accept) it. So are
//! all tools of a server whose entry has changed, its program, arguments, names of variables or
//! address: another program could stand behind the name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::files::{DataFolder, FileError};
use rockbot_core::{BoxError, Digest};
use serde::{Deserialize, Serialize};

use crate::audit;
use crate::connection::ListedTool;
use crate::server::McpServer;

/// The name of the document.
const FILE: &str = "pins.json";

/// Maximum size of the document, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum number of names that are pinned of a server. A server that names its tools anew all
/// the time could fill the disk: further names are held.
const MAX_PINS: usize = 1_000;

/// Maximum number of pinned servers of bridges: a bridge that names its servers anew all the time
/// could fill the disk with pins. The tools of further servers are held.
const MAX_BRIDGED: usize = 256;

/// Maximum number of servers of one bridge that are pinned.
const MAX_OF_BRIDGE: usize = 128;

/// The pins of all servers, in a document if the host has a data folder.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    folder: Option<Arc<DataFolder>>,
    /// Held while the document is written, so that it never goes back in time.
    writing: Mutex<()>,
    pinned: Mutex<BTreeMap<String, PinnedServer>>,
}

/// The pins of one server.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct PinnedServer {
    /// The digest of how the server is reached.
    endpoint: Digest,
    tools: BTreeMap<String, Digest>,
    /// The tools of a changed entry that were not accepted with the others.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    held: BTreeSet<String>,
}

impl PinnedServer {
    /// Returns the pins of a server at `endpoint`; no tool is pinned.
    fn at(endpoint: Digest) -> Self {
        Self {
            endpoint,
            tools: BTreeMap::new(),
            held: BTreeSet::new(),
        }
    }

    /// Returns the reason why a tool is held, or `None` if it may be used or is new.
    fn objection(&self, endpoint: Digest, tool: &ListedTool) -> Option<&'static str> {
        if self.endpoint != endpoint || self.held.contains(&tool.name) {
            return Some("the entry of its server has changed");
        }
        let pin = self.tools.get(&tool.name);
        match pin {
            Some(pin) if *pin != tool.fingerprint => Some("it has changed"),
            None if self.tools.len() >= MAX_PINS => Some("its server has too many names of tools"),
            _ => None,
        }
    }

    /// Pins these definitions. Of a changed entry, the others that are held stay so.
    fn accept(&mut self, endpoint: Digest, tools: Vec<(String, Digest)>, held: &[ListedTool]) {
        if self.endpoint != endpoint {
            *self = Self::at(endpoint);
            self.held = held.iter().map(|tool| tool.name.clone()).collect();
        }
        for (name, fingerprint) in tools {
            self.held.remove(&name);
            self.tools.insert(name, fingerprint);
        }
    }
}

/// A list of tools after the comparison with the pins.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    pub(crate) admitted: Vec<ListedTool>,
    /// The tools that must be accepted first: their definition or the entry of their server has
    /// changed, or they are beyond the maximum number of names.
    pub(crate) held: Vec<ListedTool>,
    /// `true` if something was pinned that is not in the document.
    is_new: bool,
    /// The tools whose definitions are kept for the operator.
    audited: Vec<ListedTool>,
}

impl Pins {
    /// Opens the document below `folder`, which is locked for this process.
    pub(crate) fn open(folder: impl Into<Arc<DataFolder>>) -> Result<Self, BoxError> {
        let folder = folder.into();
        let pinned = match folder.read(FILE, MAX_BYTES) {
            Ok(None) => Ok(BTreeMap::new()),
            Ok(Some(text)) => serde_json::from_slice(&text).map_err(BoxError::from),
            Err(error) if error.is_damage() => Err(error.into()),
            Err(error) => return Err(error.into()),
        };
        let pinned = match pinned {
            Ok(pinned) => pinned,
            Err(error) => {
                let kept = folder.quarantine(FILE)?;
                tracing::warn!(%error, kept, "pinned tools of MCP servers cannot be read; all are pinned anew");
                BTreeMap::new()
            }
        };
        Ok(Self {
            folder: Some(folder),
            writing: Mutex::new(()),
            pinned: Mutex::new(pinned),
        })
    }

    /// Compares a server's tools with its pins, and pins the new tools.
    pub(crate) async fn compare(self: &Arc<Self>, server: &McpServer, tools: Vec<ListedTool>) -> Compared {
        let mut compared = self.admit(server, tools);
        let audited = std::mem::take(&mut compared.audited);
        if compared.is_new || !audited.is_empty() {
            self.save(server.name().to_owned(), compared.is_new, audited).await;
        }
        compared
    }

    /// Pins exactly these definitions of a server, each a name and a fingerprint, and writes the
    /// document. `held` are all of its tools that are held.
    pub(crate) async fn accept(
        self: &Arc<Self>,
        server: &McpServer,
        tools: Vec<(String, Digest)>,
        held: &[ListedTool],
    ) {
        let endpoint = server.endpoint_digest();
        self.lock()
            .entry(server.pin_key())
            .or_insert_with(|| PinnedServer::at(endpoint))
            .accept(endpoint, tools, held);
        self.save(server.name().to_owned(), true, Vec::new()).await;
    }

    /// Returns `true` if exactly this definition of a server's tool is pinned.
    pub(crate) fn has(&self, server: &McpServer, tool: &ListedTool) -> bool {
        let pinned = self.lock();
        let pins = pinned.get(&server.pin_key());
        pins.is_some_and(|pins| {
            pins.objection(server.endpoint_digest(), tool).is_none() && pins.tools.contains_key(&tool.name)
        })
    }

    fn admit(&self, server: &McpServer, tools: Vec<ListedTool>) -> Compared {
        let mut pinned = self.lock();
        let endpoint = server.endpoint_digest();
        let key = server.pin_key();
        if !pinned.contains_key(&key) && !has_room(&pinned, server) {
            return Compared {
                held: tools,
                ..Compared::default()
            };
        }
        let pins = pinned.entry(key).or_insert_with(|| PinnedServer::at(endpoint));
        let mut compared = Compared::default();
        for tool in tools {
            if let Some(why) = pins.objection(endpoint, &tool) {
                let server = server.name();
                let name = tool.name.as_str();
                tracing::warn!(
                    server,
                    tool = name,
                    why,
                    "a tool of an MCP server is held until it is accepted"
                );
                if pins.tools.contains_key(name) {
                    compared.audited.push(tool.clone());
                }
                compared.held.push(tool);
                continue;
            }
            if pins.tools.insert(tool.name.clone(), tool.fingerprint).is_none() {
                compared.is_new = true;
                if audit::is_shown_otherwise(&tool) {
                    compared.audited.push(tool.clone());
                }
            }
            compared.admitted.push(tool);
        }
        compared
    }

    /// Writes the document if it `is_new`, and the copies. A failure is logged: the pins hold until
    /// the process ends.
    async fn save(self: &Arc<Self>, server: String, is_new: bool, audited: Vec<ListedTool>) {
        let pins = self.clone();
        let write = move || {
            if let Some(folder) = &pins.folder {
                audit::keep(folder, &server, &audited)?;
            }
            if is_new { pins.write() } else { Ok(()) }
        };
        let saved = tokio::task::spawn_blocking(write).await;
        if let Ok(Err(error)) = saved {
            tracing::warn!(%error, "pinned tools of MCP servers are not saved; after a restart they are pinned anew");
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, PinnedServer>> {
        // No code that can panic runs under the lock, so a poisoned map is consistent.
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> Result<(), FileError> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        // A copy: tasks wait for this lock, and a disk is slow.
        let pinned = self.lock().clone();
        let text = serde_json::to_vec(&pinned).unwrap_or_default();
        folder.replace(FILE, &text)
    }
}

/// Returns `true` if a server that is not pinned yet may be pinned. Servers that the agent itself
/// is connected to are bounded by their number.
fn has_room(pinned: &BTreeMap<String, PinnedServer>, server: &McpServer) -> bool {
    let Some(bridge) = server.bridge() else {
        return true;
    };
    // No name of a server has a slash.
    let bridges = || pinned.keys().filter_map(|key| Some(key.rsplit_once('/')?.0));
    bridges().count() < MAX_BRIDGED && bridges().filter(|of| *of == bridge).count() < MAX_OF_BRIDGE
}
