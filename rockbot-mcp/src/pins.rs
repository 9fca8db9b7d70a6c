//! The pinned definitions of servers' tools: trust on first use.
//!
//! A server could offer a harmless tool until it is trusted, and then change its description or its schema (a *rug pull*).
//! So the digest of each definition is kept. A tool whose definition has changed is held back until the operator
//! [accepts](crate::McpServers::accept) it; a server whose configuration has changed is pinned anew.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

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

/// Maximum number of names that are pinned of a server. A server that names its tools anew all the time could fill the disk:
/// further names are held.
const MAX_PINS: usize = 1_000;

/// Maximum number of servers of bridges that are pinned: those of a bridge that names its servers anew all the time could fill
/// the disk. The tools of further ones are held.
const MAX_BRIDGED: usize = 256;

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
}

impl PinnedServer {
    /// Returns the pins of a server that is reached so, of which no tool is pinned.
    fn at(endpoint: Digest) -> Self {
        Self {
            endpoint,
            tools: BTreeMap::new(),
        }
    }
}

/// A list of tools after the comparison with the pins.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    pub(crate) admitted: Vec<ListedTool>,
    /// The tools whose definition has changed, and those beyond the maximum number of names.
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

    /// Compares a server's tools with its pins, and pins those that are new.
    pub(crate) async fn compare(self: &Arc<Self>, server: &McpServer, tools: Vec<ListedTool>) -> Compared {
        let mut compared = self.admit(server, tools);
        let audited = std::mem::take(&mut compared.audited);
        if compared.is_new || !audited.is_empty() {
            self.save(server.name().to_owned(), compared.is_new, audited).await;
        }
        compared
    }

    /// Pins exactly these definitions of a server, each a name and a fingerprint, and writes the document. A server whose
    /// configuration has changed meanwhile keeps its pins.
    pub(crate) async fn accept(self: &Arc<Self>, server: &McpServer, tools: Vec<(String, Digest)>) {
        {
            let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
            let endpoint = server.endpoint_digest();
            let pins = pinned
                .entry(server.pin_key())
                .or_insert_with(|| PinnedServer::at(endpoint));
            if pins.endpoint == endpoint {
                pins.tools.extend(tools);
            }
        }
        self.save(server.name().to_owned(), true, Vec::new()).await;
    }

    /// Returns `true` if exactly this definition of a server's tool is pinned.
    pub(crate) fn has(&self, server: &McpServer, tool: &ListedTool) -> bool {
        let pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        let pins = pinned.get(&server.pin_key());
        let pins = pins.filter(|pins| pins.endpoint == server.endpoint_digest());
        pins.is_some_and(|pins| pins.tools.get(&tool.name) == Some(&tool.fingerprint))
    }

    fn admit(&self, server: &McpServer, tools: Vec<ListedTool>) -> Compared {
        let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        let endpoint = server.endpoint_digest();
        let key = server.pin_key();
        if server.is_bridged() && !pinned.contains_key(&key) {
            let bridged = pinned.keys().filter(|key| key.contains('/')).count();
            if bridged >= MAX_BRIDGED {
                return Compared {
                    held: tools,
                    ..Compared::default()
                };
            }
        }
        let pins = pinned.entry(key).or_insert_with(|| PinnedServer::at(endpoint));
        if pins.endpoint != endpoint {
            *pins = PinnedServer::at(endpoint);
        }
        let mut compared = Compared::default();
        for tool in tools {
            match pins.tools.get(&tool.name) {
                Some(pin) if *pin != tool.fingerprint => {
                    let (server, name) = (server.name(), tool.name.as_str());
                    tracing::warn!(
                        server,
                        tool = name,
                        "a tool of an MCP server has changed; it is held until it is accepted"
                    );
                    compared.audited.push(tool.clone());
                    compared.held.push(tool);
                    continue;
                }
                None if pins.tools.len() >= MAX_PINS => {
                    compared.held.push(tool);
                    continue;
                }
                Some(_) => {}
                None => {
                    compared.is_new = true;
                    if audit::is_shown_otherwise(&tool) {
                        compared.audited.push(tool.clone());
                    }
                    pins.tools.insert(tool.name.clone(), tool.fingerprint);
                }
            }
            compared.admitted.push(tool);
        }
        compared
    }

    /// Writes the document if it `is_new`, and the copies. A failure is logged: the pins hold until the process ends.
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

    fn write(&self) -> Result<(), FileError> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        // A copy: tasks wait for this lock, and a disk is slow.
        let pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = serde_json::to_vec(&pinned).unwrap_or_default();
        folder.replace(FILE, &text)
    }
}
