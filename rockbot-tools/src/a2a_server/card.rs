//! The agent card, which tells other agents about this agent before they call.

use bytes::Bytes;
use rockbot_core::Digest;
use rockbot_core::service::AgentSkill;
use serde_json::{Value, json};

use super::content::{INPUT_MODES, OUTPUT_MODES};

/// The path of the card.
pub(super) const PATH: &str = "/.well-known/agent-card.json";

/// The path of the card in version 0.2. Some clients of version 0.3 look there, too.
pub(super) const OLD_PATH: &str = "/.well-known/agent.json";

/// Name of the header with the key of a caller, beside a bearer token.
pub(super) const KEY_HEADER: &str = "X-API-Key";

/// The texts of a card.
#[derive(Debug, Clone)]
pub(super) struct CardText {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) version: String,
    pub(super) skills: Vec<AgentSkill>,
    /// `true` if callers need a key.
    pub(super) needs_key: bool,
}

/// The card, as it is sent.
#[derive(Debug)]
pub(super) struct Card {
    url: String,
    skills: Vec<String>,
    pub(super) json: Bytes,
    pub(super) etag: String,
}

impl Card {
    /// Writes the card of an agent that is served at `url`, which ends with a slash.
    pub(super) fn new(text: CardText, url: String) -> Self {
        let json = Bytes::from(card(&text, &url).to_string());
        Self {
            etag: format!("\"{}\"", Digest::of([&json]).short()),
            skills: text.skills.into_iter().map(|skill| skill.id).collect(),
            url,
            json,
        }
    }

    /// Returns the URL of the agent, which ends with a slash.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn has_skill(&self, id: &str) -> bool {
        self.skills.iter().any(|skill| skill == id)
    }
}

/// Writes the members of version 1.0, and beside them the members of version 0.3 that have other
/// names.
fn card(text: &CardText, url: &str) -> Value {
    let interface =
        |binding: &str, version: &str| json!({"url": url, "protocolBinding": binding, "protocolVersion": version});
    let mut card = json!({
        "name": text.name,
        "description": text.description,
        "version": text.version,
        "supportedInterfaces": [interface("JSONRPC", "1.0"), interface("HTTP+JSON", "1.0"), interface("JSONRPC", "0.3")],
        "capabilities": {"streaming": true, "pushNotifications": true, "extendedAgentCard": false},
        "defaultInputModes": INPUT_MODES,
        "defaultOutputModes": OUTPUT_MODES,
        "skills": text.skills.iter().map(skill).collect::<Vec<_>>(),
        "protocolVersion": "0.3.0",
        "url": url,
        "preferredTransport": "JSONRPC",
    });
    if text.needs_key {
        // Each scheme has the members of both versions.
        card["securitySchemes"] = json!({
            "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}, "type": "http", "scheme": "Bearer"},
            "apiKey": {
                "apiKeySecurityScheme": {"location": "header", "name": KEY_HEADER},
                "type": "apiKey", "in": "header", "name": KEY_HEADER,
            },
        });
        let schemes = ["bearer", "apiKey"];
        card["securityRequirements"] = schemes.map(|name| json!({"schemes": {name: {"list": []}}})).into();
        card["security"] = schemes.map(|name| json!({name: []})).into();
    }
    card
}

fn skill(skill: &AgentSkill) -> Value {
    let description = skill.description.as_deref().unwrap_or(&skill.name);
    let mut card = json!({"id": skill.id, "name": skill.name, "description": description, "tags": skill.tags});
    if !skill.examples.is_empty() {
        card["examples"] = json!(skill.examples);
    }
    card
}
