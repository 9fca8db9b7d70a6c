//! The tools of one worker, as the agent registers them: within bounds, as text of another program.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::MessageId;
use rockbot_core::messaging::{Bus, RequestClient, check_topic};
use rockbot_core::support::{defused, loggable, one_line};
use rockbot_core::tool::{
    Owner, RegistryError, RemoteToolExecutor, Tool, ToolError, ToolRegistration, ToolRegistry, remote_tool, tool,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::wire::{AnnouncedGuide, ToolsAnnounced};

/// Maximum number of tools of one worker; the others are left out.
const MAX_TOOLS: usize = 256;

/// Maximum length of the descriptions, schemas and guides of one worker, in bytes.
const MAX_TEXT: usize = 2 * 1024 * 1024;

/// Maximum number of tools of a worker that are left out, because of their names or schemas,
/// before all are.
const MAX_REFUSED: usize = 16;

/// Maximum number of guides of one worker, and maximum length of each in bytes.
const MAX_GUIDES: usize = 32;
const MAX_GUIDE: usize = 64 * 1024;

/// The beginning of the topics of calls: an announcement must not lead calls elsewhere.
const CALL_TOPICS: &str = "tool.";

/// The parts of an agent that calls of remote tools need.
#[derive(Debug)]
pub(super) struct Caller {
    client: Arc<RequestClient>,
    /// Takes the ids of calls whose answers are no longer awaited.
    abandoned: mpsc::Sender<MessageId>,
    time_limit: Duration,
}

impl Caller {
    /// Creates the caller of an agent, whose calls take at most `time_limit`.
    pub(super) fn new(
        bus: Arc<dyn Bus>,
        agent: Arc<str>,
        abandoned: mpsc::Sender<MessageId>,
        time_limit: Duration,
    ) -> Self {
        Self {
            // The limit of the client applies to all its requests, and its default is shorter than some calls.
            client: Arc::new(RequestClient::new(bus, agent).with_time_limit(time_limit)),
            abandoned,
            time_limit,
        }
    }

    /// Returns the tools of an announcement. The tools of a vouched worker describe themselves as
    /// the host's own do.
    pub(super) fn tools_of(&self, offer: &ToolsAnnounced, is_vouched: bool) -> Result<Vec<Tool>, &'static str> {
        if !offer.topic.starts_with(CALL_TOPICS) || check_topic(&offer.topic).is_err() {
            return Err("its topic is not below `tool.`");
        }
        if offer.text_len() > MAX_TEXT {
            return Err("its descriptions and guides are too long");
        }
        let registrations = offer.tools.iter().take(MAX_TOOLS);
        let tools = registrations.map(|tool| self.tool(tool, offer, is_vouched));
        Ok(tools.chain(guide_tool(offer, is_vouched)).collect())
    }

    fn tool(&self, announced: &ToolRegistration, offer: &ToolsAnnounced, is_vouched: bool) -> Tool {
        let mut registration = announced.clone().with_source(source(&offer.worker));
        let hints = &mut registration.hints;
        // The words of a program about its tools count where they make the agent more careful, not
        // less.
        hints.keeps_results_whole = false;
        hints.runs_turn = false;
        hints.reads_guides = false;
        hints.own_output = false;
        hints.internal = false;
        hints.activates.clear();
        hints.outside_text = !is_vouched;
        let limit = hints
            .time_limit
            .map_or(self.time_limit, |limit| limit.min(self.time_limit));
        hints.time_limit = Some(limit);
        let executor = RemoteToolExecutor::new(self.client.clone())
            .with_topic(&*offer.topic)
            .with_abandoned(self.abandoned.clone());
        remote_tool(registration, executor)
    }
}

/// Returns the origin of the tools of a worker.
pub(super) fn source(worker: &str) -> String {
    format!("worker:{worker}")
}

/// Replaces the tools of a worker in the registry. A tool that the registry refuses, since it has
/// a tool of the name or cannot use the schema, is left out; the others are registered.
pub(super) fn replace(registry: &dyn ToolRegistry, owner: &Owner, worker: &str, mut tools: Vec<Tool>) {
    for _ in 0..=MAX_REFUSED {
        let Err(error) = registry.replace_source(owner, tools.clone()) else {
            return;
        };
        tracing::warn!(worker = %loggable(worker), %error, "a tool of a worker is left out; the others are used");
        let (RegistryError::Duplicate(name)
        | RegistryError::InvalidName(name)
        | RegistryError::NoDescription(name)
        | RegistryError::InvalidSchema { name, .. }) = &error
        else {
            break;
        };
        // If two tools in an announcement have the same name, the first stays.
        let Some(position) = tools.iter().rposition(|tool| tool.registration.name == *name) else {
            break;
        };
        tools.remove(position);
    }
    tracing::warn!(worker = %loggable(worker), "too many tools of a worker cannot be used: none of them is");
    if let Err(error) = registry.replace_source(owner, Vec::new()) {
        tracing::warn!(worker = %loggable(worker), %error, "the tools of a worker cannot be removed");
    }
}

/// The arguments of the tool that reads the guides of a worker.
#[derive(Deserialize, JsonSchema)]
struct ReadGuide {
    /// The name of the guide.
    name: String,
}

/// Returns the tool that reads the guides of a worker, if it has some. Its output is labelled
/// like the output of any tool.
fn guide_tool(offer: &ToolsAnnounced, is_vouched: bool) -> Option<Tool> {
    let guides: Vec<_> = offer.guides.iter().take(MAX_GUIDES).cloned().collect();
    if guides.is_empty() {
        return None;
    }
    let lines = guides
        .iter()
        .map(|guide| format!("{}: {}", one_line(&guide.name), one_line(&guide.summary)));
    let lines = lines.collect::<Vec<_>>().join("; ");
    let description = format!(
        "Reads a guide to the tools of `{}`, before you first use them. The guides are: {lines}",
        one_line(&offer.worker)
    );
    let read = move |ReadGuide { name }: ReadGuide| {
        let found = text_of(&guides, &name);
        async move { found }
    };
    let letters = offer.worker.chars().map(|letter| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => letter,
        _ => '_',
    });
    let name: String = letters.take(48).collect();
    let mut tool = tool(&format!("{name}_guide"), read).description(description).pure();
    tool.registration = tool.registration.with_source(source(&offer.worker));
    tool.registration.hints.outside_text = !is_vouched;
    Some(tool)
}

fn text_of(guides: &[AnnouncedGuide], name: &str) -> Result<String, ToolError> {
    let guide = guides.iter().find(|guide| guide.name == name);
    let guide = guide.ok_or_else(|| {
        let names: Vec<_> = guides.iter().map(|guide| guide.name.as_str()).collect();
        ToolError::invalid_arguments(format!(
            "there is no guide `{name}`. The guides are: {}",
            names.join(", ")
        ))
    })?;
    let end = guide.document.floor_char_boundary(MAX_GUIDE);
    Ok(defused(&guide.document[..end]).into_owned())
}
