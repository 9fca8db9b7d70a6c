//! The connected servers of a host, and the tools that it has of them.
//!
//! Tools of servers stand in the order of the configuration (`ToolRegistry::arrange`), not in
//! the order of connecting: the text for models is the same after each start, and so is the
//! provider's prompt cache.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rockbot_core::ToolName;
use rockbot_core::support::one_line;
use rockbot_core::tool::{Tool, ToolExposure, ToolGroup, ToolHints, ToolRegistration, ToolRegistry};
use tokio::sync::watch;

use crate::config::Commands;
use crate::connection::ListedTool;
use crate::exposure::McpExposure;
use crate::naming::{group_name, tool_name};
use crate::pins::Pins;
use crate::requests::{Answers, PATIENCE};
use crate::server::McpServer;
use crate::service::{Link, Registered, Service, ServiceState};
use crate::tool_call::{MAX_WAIT, TypedTool};
use crate::tool_index::search_of;

/// Number of servers whose tools are shown because they were called last.
const PINNED: usize = 3;

/// Maximum number of tools that a model activates as one group. The tools of a larger server are
/// found one by one: providers refuse requests with more than 128 tools.
const MAX_GROUP: usize = 40;

/// Maximum length of all servers' words about themselves in the lines of their groups, in bytes:
/// 1 000 tokens.
const ALL_WORDS: usize = 4_000;

/// Maximum lengths of one server's words in the line of its group, in bytes: the longest that all
/// servers together have room for. They are few, since each change of it registers all tools
/// anew.
const MAX_WORDS: [usize; 4] = [160, 80, 40, 20];

/// Estimated bytes of a token.
const BYTES_PER_TOKEN: usize = 4;

/// Length of the frame of a tool's definition, in bytes.
const DEFINITION_FRAME: usize = 80;

/// Options of all servers.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) exposure: McpExposure,
    pub(crate) max_shown: usize,
    pub(crate) max_shown_tokens: usize,
    pub(crate) connect_limit: Duration,
    pub(crate) ping_limit: Duration,
    pub(crate) answers: Answers,
    pub(crate) commands: Commands,
}

/// The servers and their tools in the registry.
#[derive(Debug)]
pub(crate) struct Bridge {
    pub(crate) options: Options,
    pub(crate) pins: Arc<Pins>,
    registry: Arc<dyn ToolRegistry>,
    services: Mutex<BTreeMap<String, Arc<Service>>>,
    /// The keys of the servers that were called last, the latest first. Held while tools are
    /// registered, too, so that two changes at a time cannot exceed the maximum.
    recent: Mutex<Vec<String>>,
    changes: watch::Sender<u64>,
}

impl Bridge {
    pub(crate) fn new(registry: Arc<dyn ToolRegistry>, options: Options, pins: Pins) -> Self {
        Self {
            options,
            pins: Arc::new(pins),
            registry,
            services: Mutex::default(),
            recent: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    /// Adds a server. Returns `None` if another server has its name.
    pub(crate) fn add(&self, service: Service) -> Option<Arc<Service>> {
        let mut services = self.services();
        if services.contains_key(&service.server.key()) {
            return None;
        }
        let service = Arc::new(service);
        services.insert(service.server.key(), service.clone());
        Some(service)
    }

    /// Removes a server, ends its connection, and removes its tools.
    pub(crate) fn remove(&self, name: &str) -> Option<Arc<Service>> {
        let service = self.services().remove(&name.to_lowercase())?;
        service.stop.cancel();
        // At once: a server that takes its place may have the same tools.
        self.retire(&service);
        Some(service)
    }

    /// Returns the server of this name; its case does not matter.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Service>> {
        self.services().get(&name.to_lowercase()).cloned()
    }

    /// Returns a number that changes with every change of a server or its tools.
    pub(crate) fn generation(&self) -> u64 {
        *self.changes.borrow()
    }

    /// Returns all servers, sorted by name.
    pub(crate) fn all(&self) -> Vec<Arc<Service>> {
        self.services().values().cloned().collect()
    }

    /// Returns the names of the servers that are being connected for the first time, sorted.
    pub(crate) fn unsettled(&self) -> Vec<String> {
        let services = self.services();
        let unsettled = services
            .values()
            .filter(|service| !service.is_settled.load(Ordering::Acquire));
        unsettled.map(|service| service.server.name().to_owned()).collect()
    }

    /// Returns a receiver that is notified of every change of a server or its tools.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Records a call: from now on the tools of its server may be shown.
    pub(crate) fn record_call(&self, service: &Service) {
        if self.options.exposure != McpExposure::Pinned {
            return;
        }
        let key = service.server.key();
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let was_pinned = recent.iter().take(PINNED).any(|pinned| *pinned == key);
        recent.retain(|pinned| *pinned != key);
        recent.insert(0, key);
        recent.truncate(PINNED);
        drop(recent);
        if !was_pinned {
            self.publish();
        }
    }

    /// Takes the held tools of a server into use that are pinned by now.
    pub(crate) fn release(&self, service: &Service) {
        service.state.send_modify(|state| {
            let held = state.held.iter().cloned();
            let (released, held): (Vec<_>, Vec<_>) = held.partition(|tool| self.pins.has(&service.server, tool));
            state.tools = state.tools.iter().cloned().chain(released).collect();
            state.held = held.into();
        });
        self.publish();
    }

    /// Registers the tools of all servers as they are now.
    pub(crate) fn publish(&self) {
        let mut services = self.all();
        services.sort_by_cached_key(|service| service.place());
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let states: Vec<_> = services.iter().map(|service| service.state.borrow().clone()).collect();
        let max_words = max_words(states.iter().filter(|state| !state.tools.is_empty()).count());
        let mut room = Room::of(&self.options);
        for (service, state) in services.iter().zip(&states) {
            let shown = match self.options.exposure {
                McpExposure::Eager => room.take(state.tools.len()),
                McpExposure::Pinned => {
                    let is_small = room.take_tokens(&state.tools);
                    let is_shown = is_small || recent.contains(&service.server.key());
                    room.take(if is_shown { state.tools.len() } else { 0 })
                }
                McpExposure::Off | McpExposure::Lazy => 0,
            };
            self.register_changed(service, state, shown, max_words);
            if !matches!(state.link, Link::Connecting) {
                // Only now: a turn that waited for the server looks at the registry at once.
                service.is_settled.store(true, Ordering::Release);
            }
        }
        let owners: Vec<_> = services.iter().map(|service| service.owner.clone()).collect();
        self.registry.arrange(&owners);
        drop(recent);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Registers a server's tools, the first `shown` of them always shown, unless they are registered
    /// so already: each schema is compiled anew, and servers have hundreds.
    fn register_changed(&self, service: &Arc<Service>, state: &ServiceState, shown: usize, max_words: usize) {
        let wanted = Registered {
            tools: state.tools.clone(),
            instructions: state.instructions.clone(),
            shown,
            max_words,
        };
        let mut registered = service.registered.lock().unwrap_or_else(PoisonError::into_inner);
        if *registered == Some(wanted.clone()) {
            return;
        }
        let tools = match self.options.exposure {
            McpExposure::Off => Vec::new(),
            _ => self.tools(service, &wanted),
        };
        *registered = self.register(service, tools).then_some(wanted);
    }

    /// Returns the tools of a server; the first `shown` tools are always shown. The other tools of a
    /// large server are shown one by one, and the group of their server has a tool that searches
    /// them.
    fn tools(&self, service: &Arc<Service>, wanted: &Registered) -> Vec<Tool> {
        let group = group_of(service, wanted);
        let is_large = wanted.tools.len() > MAX_GROUP;
        let tools = wanted.tools.iter().enumerate();
        let tools = tools.map(|(index, listed)| {
            let exposure = if index < wanted.shown {
                ToolExposure::Always
            } else if is_large {
                ToolExposure::WhenNeeded(tool_name(service.server.name(), &listed.name))
            } else {
                ToolExposure::OnDemand(group.clone())
            };
            let executor = TypedTool::new(service.clone(), listed);
            Tool::new(self.registration(&service.server, listed, exposure), executor)
        });
        let mut tools: Vec<_> = tools.collect();
        if is_large {
            tools.push(search_of(&service.server, wanted.tools.clone(), group));
        }
        tools
    }

    /// Returns the registration of a tool, also if it is not registered.
    pub(crate) fn registration_of(&self, service: &Service, listed: &ListedTool) -> ToolRegistration {
        let name = tool_name(service.server.name(), &listed.name);
        match self.registry.snapshot().find(name.as_str()) {
            Some(entry) if entry.owner() == &service.owner => entry.registration().clone(),
            _ => self.registration(&service.server, listed, ToolExposure::Always),
        }
    }

    /// Returns the registration of a tool: its text is the server's, unless the operator vouches for
    /// it.
    fn registration(&self, server: &McpServer, listed: &ListedTool, exposure: ToolExposure) -> ToolRegistration {
        let name: ToolName = tool_name(server.name(), &listed.name);
        let description = match listed.description.trim() {
            "" => format!("[{}] {}", server.name(), listed.name),
            text => format!("[{}] {text}", server.name()),
        };
        // A call of a tool that is not shown shows it from then on, and the others of its group.
        let activates = exposure.group().cloned().into_iter().collect();
        // The call's own limit comes first, and the server's words explain it.
        let mut time_limit = server.time_limit.saturating_add(MAX_WAIT + Duration::from_secs(2));
        if self.options.answers.are_any() {
            time_limit = time_limit.saturating_add(PATIENCE);
        }
        let hints = ToolHints::default()
            .with_outside_text(!server.is_trusted)
            .with_needs_approval(server.asks_about(&listed.name))
            .with_time_limit(time_limit)
            .with_exposure(exposure)
            .with_activates(activates);
        ToolRegistration::new(name, description, listed.schema.clone())
            .with_source(format!("mcp:{}", server.name()))
            .with_effect(server.effect(listed.claimed))
            .with_hints(hints)
    }

    /// Replaces the tools of a server in the registry. A tool whose name is taken is left out: no
    /// tool shadows another. Returns `true` if all are registered.
    fn register(&self, service: &Service, mut tools: Vec<Tool>) -> bool {
        let snapshot = self.registry.snapshot();
        let is_free = |tool: &Tool| {
            let entry = snapshot.find(tool.registration.name.as_str());
            let is_free = entry.is_none_or(|entry| entry.owner() == &service.owner);
            if !is_free {
                let server = service.server.name();
                let tool = &tool.registration.name;
                tracing::warn!(server, %tool, "a tool of an MCP server is left out: its name is taken");
            }
            is_free
        };
        let count = tools.len();
        tools.retain(is_free);
        if service.stop.is_cancelled() {
            tools.clear();
        }
        let is_whole = tools.len() == count;
        match self.registry.replace_source(&service.owner, tools) {
            Ok(()) => is_whole,
            Err(error) => {
                let server = service.server.name();
                tracing::warn!(server, %error, "the tools of an MCP server cannot be registered");
                false
            }
        }
    }

    /// Removes the tools of a server that is no longer configured.
    pub(crate) fn retire(&self, service: &Service) {
        self.register(service, Vec::new());
        *service.registered.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.changes.send_modify(|changes| *changes += 1);
    }

    fn services(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Service>>> {
        // An insertion either happened or did not, so a poisoned map is consistent.
        self.services.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The room for tools that are always shown.
struct Room {
    tools: usize,
    tokens: usize,
}

impl Room {
    fn of(options: &Options) -> Self {
        Self {
            tools: options.max_shown,
            tokens: options.max_shown_tokens,
        }
    }

    /// Takes room for as many of a server's tools as there is.
    fn take(&mut self, tools: usize) -> usize {
        let taken = tools.min(self.tools);
        self.tools -= taken;
        taken
    }

    /// Takes room for all tools of a server. Returns `false` if there is too little.
    fn take_tokens(&mut self, tools: &[ListedTool]) -> bool {
        if tools.len() > self.tools {
            return false;
        }
        let mut left = self.tokens;
        for tool in tools {
            let length = DEFINITION_FRAME + tool.name.len() + tool.description.len() + tool.schema.to_string().len();
            // The first tool that does not fit ends the count: servers have hundreds.
            let Some(rest) = left.checked_sub(length.div_ceil(BYTES_PER_TOKEN)) else {
                return false;
            };
            left = rest;
        }
        self.tokens = left;
        true
    }
}

/// Returns the maximum length of the words in the line of each of so many servers. Without room
/// for words the names stand alone.
fn max_words(servers: usize) -> usize {
    let fits = |words: &usize| words * servers <= ALL_WORDS;
    MAX_WORDS.into_iter().find(fits).unwrap_or_default()
}

/// Returns the group of a server's tools, described by the server's own words or by the names of
/// its tools.
fn group_of(service: &Service, wanted: &Registered) -> ToolGroup {
    let words = match &wanted.instructions {
        Some(text) => one_line(text).into_owned(),
        None => {
            let names: Vec<_> = wanted.tools.iter().take(8).map(|tool| one_line(&tool.name)).collect();
            names.join(", ")
        }
    };
    let end = words.floor_char_boundary(wanted.max_words);
    let mut summary = words;
    if end < summary.len() {
        summary.truncate(end);
        summary.push('…');
    }
    let count = wanted.tools.len();
    if count > MAX_GROUP {
        summary = format!("{summary} ({count} tools, found by words)");
    }
    let group = ToolGroup::new(group_name(service.server.name()), summary);
    match &wanted.instructions {
        Some(text) if text.len() > wanted.max_words => group.with_guide(text.to_string()),
        _ => group,
    }
}
