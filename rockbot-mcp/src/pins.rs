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

use crate::connection::ListedTool;
use crate::server::McpServer;

/// The name of the document.
const FILE: &str = "pins.json";

/// Maximum size of the document, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// The pins of all servers, in a document if the host has a data folder.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    folder: Option<DataFolder>,
    pinned: Mutex<BTreeMap<String, PinnedServer>>,
}

/// The pins of one server.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct PinnedServer {
    /// The digest of how the server is reached.
    endpoint: Digest,
    tools: BTreeMap<String, Digest>,
}

/// A list of tools after the comparison with the pins.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    pub(crate) admitted: Vec<ListedTool>,
    /// The names of the tools whose definition has changed.
    pub(crate) held: Vec<String>,
    /// `true` if something was pinned that is not in the document.
    is_new: bool,
}

impl Pins {
    /// Opens the document below `folder`, which is locked for this process.
    pub(crate) fn open(folder: DataFolder) -> Result<Self, BoxError> {
        let text = folder.read(FILE, MAX_BYTES)?;
        let pinned = match text.map(|text| serde_json::from_slice(&text)).transpose() {
            Ok(pinned) => pinned.unwrap_or_default(),
            Err(error) => {
                let kept = folder.quarantine(FILE)?;
                tracing::warn!(%error, kept, "pinned tools of MCP servers cannot be read; all are pinned anew");
                BTreeMap::new()
            }
        };
        Ok(Self {
            folder: Some(folder),
            pinned: Mutex::new(pinned),
        })
    }

    /// Compares a server's tools with its pins, and pins those that are new.
    pub(crate) async fn compare(self: &Arc<Self>, server: &McpServer, tools: Vec<ListedTool>) -> Compared {
        let compared = self.admit(server, tools);
        if compared.is_new {
            self.save().await;
        }
        compared
    }

    /// Forgets the pins of a server: its present definitions are pinned when its tools are listed again.
    pub(crate) fn forget(&self, server: &McpServer) {
        let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        pinned.remove(&server.key());
    }

    fn admit(&self, server: &McpServer, tools: Vec<ListedTool>) -> Compared {
        let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        let endpoint = server.endpoint_digest();
        let anew = || PinnedServer {
            endpoint,
            tools: BTreeMap::new(),
        };
        let pins = pinned.entry(server.key()).or_insert_with(anew);
        if pins.endpoint != endpoint {
            *pins = anew();
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
                    compared.held.push(tool.name);
                    continue;
                }
                Some(_) => {}
                None => {
                    compared.is_new = true;
                    pins.tools.insert(tool.name.clone(), tool.fingerprint);
                }
            }
            compared.admitted.push(tool);
        }
        compared
    }

    /// Writes the document. A failure is logged: the pins hold until the process ends.
    async fn save(self: &Arc<Self>) {
        let pins = self.clone();
        let saved = tokio::task::spawn_blocking(move || pins.write()).await;
        if let Ok(Err(error)) = saved {
            tracing::warn!(%error, "pinned tools of MCP servers are not saved; after a restart they are pinned anew");
        }
    }

    fn write(&self) -> Result<(), FileError> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        // Held while writing, so that the document never goes back in time.
        let pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        let text = serde_json::to_vec_pretty(&*pinned).unwrap_or_default();
        folder.replace(FILE, &text)
    }
}
