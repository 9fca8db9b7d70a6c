//! The questions of an agent for the tools of bridges' servers: few at a time, fair between
//! bridges, repeated with back-off.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::Digest;
use rockbot_core::messaging::{MessageEnvelope, RequestClient, headers};
use rockbot_core::support::loggable;
use rockbot_core::tool::ArgumentSchema;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::directory::OwnedServer;
use super::wire::{DetailsRequest, DetailsResponse, ToolDefinition, manage_topic};
use crate::connection::{ListedTool, MAX_DESCRIPTION, MAX_NAME, MAX_TOOLS};
use crate::entrance;

/// Maximum number of questions at a time. Each bridge is asked one at a time, so a slow one
/// delays no other.
const MAX_RUNNING: usize = 4;

/// Shortest and longest time until a question is repeated.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Maximum time of one question, and of all pages of one server: few servers are asked for at a
/// time.
const TIME_LIMIT: Duration = Duration::from_secs(30);
const ALL_PAGES_LIMIT: Duration = Duration::from_secs(90);

/// Maximum length of all definitions of one server, in bytes.
const MAX_TEXT: usize = 2 * 1024 * 1024;

/// Maximum length of a server's words about itself, in bytes.
const MAX_INSTRUCTIONS: usize = 64 * 1024;

/// The tools of a server, within bounds.
#[derive(Debug, Clone)]
pub(super) struct Details {
    pub(super) tools: Vec<ListedTool>,
    pub(super) instructions: Option<Arc<str>>,
    pub(super) fingerprint: String,
    pub(super) time_limit: Option<Duration>,
}

impl Details {
    /// Returns the length of the definitions, in bytes.
    pub(super) fn text_len(&self) -> usize {
        let tools = self.tools.iter();
        let tools = tools.map(|tool| tool.name.len() + tool.description.len() + tool.schema.to_string().len());
        tools.sum::<usize>() + self.instructions.as_deref().map_or(0, str::len)
    }
}

/// The servers whose tools are wanted, with the state of their questions.
#[derive(Debug, Default)]
pub(super) struct Fetches(BTreeMap<String, Fetch>);

#[derive(Debug)]
struct Fetch {
    bridge: String,
    due: Instant,
    backoff: Duration,
    /// The bridge that is being asked, which may be a former bridge of the server.
    asking: Option<String>,
}

impl Fetches {
    /// Notes that the tools of a server are wanted. A new wish is due at once.
    pub(super) fn want(&mut self, key: &str, server: &OwnedServer, now: Instant) {
        let fetch = self.0.entry(key.to_owned()).or_insert_with(|| Fetch {
            bridge: server.bridge.clone(),
            due: now,
            backoff: MIN_BACKOFF,
            asking: None,
        });
        if fetch.bridge != server.bridge {
            fetch.bridge.clone_from(&server.bridge);
            (fetch.due, fetch.backoff) = (now, MIN_BACKOFF);
        }
    }

    /// Forgets the servers that `is_wanted` rejects, unless their question runs.
    pub(super) fn retain(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.0.retain(|key, fetch| fetch.asking.is_some() || is_wanted(key));
    }

    /// Returns the server to ask next, if a server is due: among the servers of bridges that are not
    /// being asked, the server that has waited longest.
    pub(super) fn begin(&mut self, now: Instant) -> Option<String> {
        let running = self.asked();
        if running.len() >= MAX_RUNNING {
            return None;
        }
        let due = self
            .0
            .iter_mut()
            .filter(|(_, fetch)| fetch.asking.is_none() && fetch.due <= now);
        let due = due.filter(|(_, fetch)| !running.contains(&fetch.bridge));
        let (key, fetch) = due.min_by_key(|(_, fetch)| fetch.due)?;
        fetch.asking = Some(fetch.bridge.clone());
        Some(key.clone())
    }

    /// Notes that a question has ended, and repeats it later unless the wish is withdrawn.
    pub(super) fn ended(&mut self, key: &str, now: Instant) {
        if let Some(fetch) = self.0.get_mut(key) {
            fetch.asking = None;
            fetch.due = now + fetch.backoff;
            fetch.backoff = (fetch.backoff * 2).min(MAX_BACKOFF);
        }
    }

    /// Returns the bridges that are being asked.
    fn asked(&self) -> HashSet<String> {
        self.0.values().filter_map(|fetch| fetch.asking.clone()).collect()
    }

    /// Returns the due time of the next question, if it need not wait for the end of another
    /// question.
    pub(super) fn due(&self) -> Option<Instant> {
        let running = self.asked();
        let waiting = self.0.values().filter(|fetch| fetch.asking.is_none());
        let free = waiting.filter(|fetch| !running.contains(&fetch.bridge));
        (running.len() < MAX_RUNNING).then(|| free.map(|fetch| fetch.due).min())?
    }
}

/// Asks a bridge for the tools of a server, page by page.
///
/// # Errors
///
/// Returns the reason in words if the bridge does not answer in time, or its tools exceed a bound
/// or change meanwhile.
pub(super) async fn fetch(client: &RequestClient, server: &OwnedServer) -> Result<Details, String> {
    let late = |_| Err(format!("all its definitions did not arrive within {ALL_PAGES_LIMIT:?}"));
    timeout(ALL_PAGES_LIMIT, pages(client, server))
        .await
        .unwrap_or_else(late)
}

async fn pages(client: &RequestClient, server: &OwnedServer) -> Result<Details, String> {
    let mut all: Option<DetailsResponse> = None;
    let mut length = 0;
    loop {
        let offset = all.as_ref().map_or(0, |all| all.tools.len());
        let page = page(client, server, offset).await?;
        length += page.tools.iter().map(text_len).sum::<usize>();
        if length > MAX_TEXT {
            return Err("its definitions are too long".to_owned());
        }
        let next = page.next_offset;
        let has_more = !page.tools.is_empty();
        match &mut all {
            None => all = Some(page),
            Some(all) if all.fingerprint == page.fingerprint => all.tools.extend(page.tools),
            Some(_) => return Err("its tools have changed meanwhile".to_owned()),
        }
        let count = all.as_ref().map_or(0, |all| all.tools.len());
        if next != Some(count) || !has_more || count >= MAX_TOOLS {
            break;
        }
    }
    Ok(details(server, all.unwrap_or_default()))
}

async fn page(client: &RequestClient, server: &OwnedServer, offset: usize) -> Result<DetailsResponse, String> {
    let request = DetailsRequest {
        server_name: server.name.clone(),
        offset,
    };
    let request = MessageEnvelope::of(&request).map_err(|error| error.to_string())?;
    let request = request.with_header(headers::TIMEOUT_MS, TIME_LIMIT.as_millis().to_string());
    let answer = client.call(&manage_topic(&server.bridge), request).await;
    let answer = answer.map_err(|error| error.to_string())?;
    let page: DetailsResponse = answer.payload().map_err(|error| error.to_string())?;
    match page.error {
        Some(error) => Err(error),
        None => Ok(page),
    }
}

fn text_len(tool: &ToolDefinition) -> usize {
    let schema = tool.parameters_schema.as_deref().unwrap_or_default();
    tool.name.len() + tool.description.len() + schema.len()
}

/// Returns the tools that can be used. Of two with one name the first is used.
fn details(server: &OwnedServer, all: DetailsResponse) -> Details {
    let mut names = HashSet::new();
    let tools = all.tools.into_iter().take(MAX_TOOLS).filter_map(|tool| {
        let name = loggable(&tool.name).to_string();
        let listed = listed(tool).filter(|listed| names.insert(listed.name.clone()));
        if listed.is_none() {
            tracing::warn!(server = server.name, tool = %name, "a tool of a bridge's MCP server cannot be used");
        }
        listed
    });
    let tools = tools.collect();
    let instructions = all.instructions.map(|text| {
        let end = text.floor_char_boundary(MAX_INSTRUCTIONS);
        entrance::instructions(&text[..end])
    });
    Details {
        tools: entrance::tools(&server.name, tools),
        instructions,
        fingerprint: all.fingerprint.unwrap_or_default(),
        time_limit: all.timeout_ms.map(Duration::from_millis),
    }
}

fn listed(tool: ToolDefinition) -> Option<ListedTool> {
    let schema: Value = match &tool.parameters_schema {
        Some(text) => serde_json::from_str(text).ok()?,
        None => json!({"type": "object"}),
    };
    let is_named = !tool.name.is_empty() && tool.name.len() <= MAX_NAME;
    (is_named && ArgumentSchema::compile(&schema).is_ok()).then(|| {
        let end = tool.description.floor_char_boundary(MAX_DESCRIPTION);
        ListedTool {
            // Digest of the definition that came here: the bridge's word on it is no proof.
            fingerprint: Digest::of([tool.name.as_str(), &tool.description, &schema.to_string()]),
            description: tool.description[..end].to_owned(),
            sent: (end < tool.description.len()).then(|| tool.description.as_str().into()),
            claimed: tool.effect,
            name: tool.name,
            schema,
        }
    })
}
