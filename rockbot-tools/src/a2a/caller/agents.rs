//! The tools that list, describe, register and unregister agents.

use rockbot_core::content::{Content, ContentPart, Provenance};
use rockbot_core::service::{AgentCard, AgentDirectory as _, AgentSkill};
use rockbot_core::support::one_line;
use rockbot_core::tool::{ToolError, ToolState};
use rockbot_core::trust::Label;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::cards::cut;
use super::super::directory::find_skill;
use super::CallerState;
use super::http::remote_agent::RemoteAgent;
use super::tell::label_of;
use crate::a2a_callers::is_agent_name;

/// Maximum number of agents in a list.
const MAX_LISTED: usize = 50;

/// Maximum number of skills of a registered agent.
const MAX_SKILLS: usize = 32;

/// Maximum length of a registered description, in characters.
const MAX_DESCRIPTION: usize = 1_000;

/// Lists the agents that can be called, with their skills.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListKnownAgents {
    /// The id of a skill that the agents must have; all agents by default.
    #[serde(default)]
    skill: Option<String>,
}

pub(super) async fn list(state: ToolState<CallerState>, args: ListKnownAgents) -> Result<Content, ToolError> {
    let agents = state.directory()?.agents();
    let skill = args.skill.as_deref().map(str::trim).filter(|skill| !skill.is_empty());
    let fitting = agents
        .iter()
        .filter(|card| skill.is_none_or(|skill| find_skill(card, skill).is_some()));
    let fitting: Vec<_> = fitting.collect();
    let shown = fitting.iter().take(MAX_LISTED).map(|card| {
        let skills: Vec<_> = card.skills.iter().map(|skill| one_line(&skill.id)).collect();
        json!({ "agent_name": one_line(&card.agent_name), "description": card.description.as_deref().map(one_line), "skills": skills })
    });
    let mut list = json!({ "agents": shown.collect::<Vec<_>>() });
    if fitting.len() > MAX_LISTED {
        let more = fitting.len() - MAX_LISTED;
        list["more"] = json!(format!("{more} more: name a skill, or search_known_services"));
    }
    Ok(said_by(&list, fitting.iter().take(MAX_LISTED).copied()))
}

/// Shows all that is known of an agent: its skills with examples.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GetAgentDetails {
    /// The name of the agent.
    agent_name: String,
}

pub(super) async fn details(state: ToolState<CallerState>, args: GetAgentDetails) -> Result<Content, ToolError> {
    let directory = state.directory()?;
    let name = args.agent_name.trim();
    let card = directory.known(name)?;
    let skills = card.skills.iter().map(|skill| {
        json!({
            "id": skill.id, "name": skill.name, "description": skill.description, "tags": skill.tags,
            "examples": skill.examples,
        })
    });
    let details = json!({
        "agent_name": card.agent_name, "description": card.description, "version": card.version,
        "is_on_bus": card.url.is_none(), "skills": skills.collect::<Vec<_>>(),
    });
    Ok(said_by(&details, [&card].into_iter()))
}

/// Adds an agent to those that can be called, until it is unregistered. Agents that announce
/// themselves need it not.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RegisterAgent {
    /// The exact name by which the agent takes tasks; for an agent with a URL, a name for it.
    agent_name: String,
    /// The URL of an agent that is reached over HTTP, below which its card is. Leave it out for an
    /// agent on the bus.
    #[serde(default)]
    url: Option<String>,
    /// The purpose.
    #[serde(default)]
    description: Option<String>,
    /// The ids of its skills.
    #[serde(default)]
    skills: Vec<String>,
}

pub(super) async fn register(state: ToolState<CallerState>, args: RegisterAgent) -> Result<String, ToolError> {
    let name = args.agent_name.trim();
    let has_bad_skill = args
        .skills
        .iter()
        .any(|skill| skill.is_empty() || *skill != cut(skill, 200));
    if !is_agent_name(name) {
        return Err(ToolError::invalid_arguments(
            "`agent_name` has 1 to 64 letters, digits, `-` and `_`: it is part of the address on the bus",
        ));
    }
    if has_bad_skill || args.skills.len() > MAX_SKILLS {
        return Err(ToolError::invalid_arguments(format!(
            "`skills` has at most {MAX_SKILLS} ids of 1 to 200 characters on one line"
        )));
    }
    let mut card = AgentCard::new(name);
    card.description = args.description.map(|text| cut(&text, MAX_DESCRIPTION));
    card.skills = args.skills.into_iter().map(AgentSkill::new).collect();
    card.url = args
        .url
        .map(|url| RemoteAgent::new(url).url)
        .filter(|url| !url.is_empty());
    let way = state.caller()?.way(card.url.is_some())?;
    // The card of an agent with a URL is read once it is known.
    way.prepare(&card).await?;
    state.directory()?.register(card);
    Ok(format!("The agent `{name}` is registered: invoke_agent calls it."))
}

/// Removes an agent from those that can be called. One that announces itself comes back.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct UnregisterAgent {
    /// The name of the agent.
    agent_name: String,
}

pub(super) async fn unregister(state: ToolState<CallerState>, args: UnregisterAgent) -> Result<String, ToolError> {
    let name = args.agent_name.trim();
    let removed = state.directory()?.unregister(name);
    removed.map_err(|problem| ToolError::invalid_arguments(format!("`{name}`: {problem}")))?;
    Ok(format!("The agent `{name}` is removed."))
}

/// Returns JSON with the label of the agents that described themselves in it.
fn said_by<'a>(value: &Value, agents: impl Iterator<Item = &'a AgentCard>) -> Content {
    let mut label = Label::HOST;
    agents.for_each(|card| label.join(&label_of(&one_line(&card.agent_name))));
    Content::from(ContentPart::text(format!("{value:#}")).with_provenance(Provenance::labelled("agent", &label)))
}
