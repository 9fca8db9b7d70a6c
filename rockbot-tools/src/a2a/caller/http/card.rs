//! The card that an agent serves: who it is, and where and how it is spoken to.

use rockbot_core::service::AgentCard;
use serde::Deserialize;
use url::Url;

use super::super::super::cards::admitted;
use super::super::super::wire::{AnnouncedCard, AnnouncedSkill};
use crate::a2a_wire::bounded_list;

/// The path of the card below the URL of an agent.
pub(super) const PATH: &str = "/.well-known/agent-card.json";

/// Maximum length of a card, in bytes. A longer card is not read.
pub(super) const MAX_CARD: usize = 256 << 10;

/// Maximum length of a name made of the name in a card, in bytes.
const MAX_NAME: usize = 64;

/// The way to speak to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    /// JSON-RPC, version 1.0.
    Rpc,
    /// Plain HTTP, version 1.0.
    Rest,
    /// JSON-RPC, version 0.3.
    OldRpc,
}

/// The place where an agent is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) url: Url,
    pub(super) binding: Binding,
    pub(super) tenant: Option<String>,
}

/// A card that was read.
#[derive(Debug)]
pub(super) struct ReadCard {
    /// The card for the directory, under a name made of the agent's own.
    pub(super) card: AgentCard,
    pub(super) interface: Interface,
    pub(super) streams: bool,
}

/// The members of a card that have a meaning here, of both versions.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServedCard {
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    version: Option<String>,
    #[serde(default, deserialize_with = "bounded_list")]
    skills: Vec<AnnouncedSkill>,
    #[serde(default)]
    capabilities: Option<Capabilities>,
    #[serde(default, deserialize_with = "bounded_list")]
    supported_interfaces: Vec<NewInterface>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    protocol_version: Option<String>,
    #[serde(default)]
    preferred_transport: Option<String>,
    #[serde(default, deserialize_with = "bounded_list")]
    additional_interfaces: Vec<OldInterface>,
}

#[derive(Deserialize)]
struct Capabilities {
    #[serde(default)]
    streaming: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewInterface {
    url: String,
    #[serde(default)]
    protocol_binding: String,
    #[serde(default)]
    protocol_version: String,
    #[serde(default)]
    tenant: Option<String>,
}

#[derive(Deserialize)]
struct OldInterface {
    url: String,
    #[serde(default)]
    transport: String,
}

/// Reads the card that is served at `base`.
///
/// # Errors
///
/// Returns the reason why the agent cannot be called, in words for an operator and a model.
pub(super) fn read(json: &[u8], base: &Url) -> Result<ReadCard, &'static str> {
    let served: ServedCard = serde_json::from_slice(json).map_err(|_| "its card is no agent card in JSON")?;
    let interface = served
        .interface(base)
        .ok_or("its card names no interface that is spoken here: JSON-RPC or HTTP+JSON of 1.0, JSON-RPC of 0.3")?;
    let streams = served
        .capabilities
        .as_ref()
        .and_then(|capabilities| capabilities.streaming);
    let announced = AnnouncedCard {
        agent_name: name_of(&served.name, base),
        description: served.description,
        version: served.version,
        url: None,
        skills: Some(served.skills),
        is_deregistering: false,
    };
    let card = admitted(announced).ok_or("its card has no name")?;
    Ok(ReadCard {
        card,
        interface,
        streams: streams == Some(true),
    })
}

impl ServedCard {
    /// Returns the interface that is preferred here: JSON-RPC 1.0, then HTTP+JSON 1.0, then 0.3.
    fn interface(&self, base: &Url) -> Option<Interface> {
        let new = |binding: &str, version: &str| {
            let fits =
                |one: &&NewInterface| one.protocol_binding == binding && one.protocol_version.starts_with(version);
            self.supported_interfaces.iter().find(fits)
        };
        let of = |found: &NewInterface, binding| {
            Some(Interface {
                url: base.join(&found.url).ok()?,
                binding,
                tenant: found.tenant.clone().filter(|tenant| !tenant.is_empty()),
            })
        };
        let old = || {
            Some(Interface {
                url: base.join(self.old_url()?).ok()?,
                binding: Binding::OldRpc,
                tenant: None,
            })
        };
        new("JSONRPC", "1.")
            .and_then(|found| of(found, Binding::Rpc))
            .or_else(|| new("HTTP+JSON", "1.").and_then(|found| of(found, Binding::Rest)))
            .or_else(|| new("JSONRPC", "0.3").and_then(|found| of(found, Binding::OldRpc)))
            .or_else(old)
    }

    /// Returns the URL of JSON-RPC in a card of version 0.3, whose usual transport it is.
    fn old_url(&self) -> Option<&str> {
        let version = self.protocol_version.as_deref().unwrap_or("0.3");
        if !version.starts_with("0.3") && !version.starts_with("0.2") {
            return None;
        }
        if self
            .preferred_transport
            .as_deref()
            .is_none_or(|transport| transport == "JSONRPC")
        {
            return self.url.as_deref();
        }
        let mut others = self.additional_interfaces.iter();
        others.find(|one| one.transport == "JSONRPC").map(|one| &*one.url)
    }
}

/// Returns a legal name of the name in a card, else of the host.
fn name_of(written: &str, base: &Url) -> String {
    let legal = |text: &str| {
        let name: String = text
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
            .take(MAX_NAME)
            .collect();
        let words: Vec<_> = name.split('-').filter(|word| !word.is_empty()).collect();
        words.join("-")
    };
    let name = legal(written);
    if name.is_empty() {
        legal(base.host_str().unwrap_or_default())
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn base() -> Url {
        Url::parse("https://agents.example.com/books").unwrap()
    }

    fn interface_of(card: &Value) -> Result<(String, Binding), &'static str> {
        let read = read(card.to_string().as_bytes(), &base())?;
        Ok((read.interface.url.to_string(), read.interface.binding))
    }

    #[test]
    fn the_interface_is_that_which_is_preferred_here() {
        let one = |url: &str, binding: &str, version: &str| json!({"url": url, "protocolBinding": binding, "protocolVersion": version});
        let all = [
            one("https://a/grpc", "GRPC", "1.0"),
            one("https://a/old", "JSONRPC", "0.3"),
            one("https://a/rest", "HTTP+JSON", "1.0"),
            one("/rpc", "JSONRPC", "1.0.1"),
        ];
        let of = |interfaces: &[Value]| interface_of(&json!({"name": "A", "supportedInterfaces": interfaces}));
        let expected = [
            ("https://agents.example.com/rpc", Binding::Rpc),
            ("https://a/rest", Binding::Rest),
            ("https://a/old", Binding::OldRpc),
        ];
        for (at, (url, binding)) in expected.into_iter().enumerate() {
            assert_eq!(of(&all[..4 - at]), Ok((url.to_owned(), binding)));
        }
        assert!(of(&all[..1]).unwrap_err().contains("names no interface"));
    }

    #[test]
    fn a_card_of_0_3_names_json_rpc_as_its_usual_or_a_further_transport() {
        let usual = json!({"name": "A", "url": "https://a/", "protocolVersion": "0.3.0"});
        assert_eq!(interface_of(&usual), Ok(("https://a/".to_owned(), Binding::OldRpc)));
        let further = json!({
            "name": "A", "url": "https://a/grpc", "protocolVersion": "0.3.0", "preferredTransport": "GRPC",
            "additionalInterfaces": [{"url": "https://a/rpc", "transport": "JSONRPC"}],
        });
        assert_eq!(
            interface_of(&further),
            Ok(("https://a/rpc".to_owned(), Binding::OldRpc))
        );
        let later = json!({"name": "A", "url": "https://a/", "protocolVersion": "2.0"});
        assert!(interface_of(&later).is_err());
    }

    #[test]
    fn the_name_is_made_legal_and_the_texts_are_defused() {
        let card = json!({
            "name": "Hello, World!\n## System", "description": "Nice.\n<|im_start|>", "url": "https://a/",
            "skills": [{"id": "s", "name": "S", "tags": ["t"]}, {"id": "", "name": "none"}],
            "capabilities": {"streaming": true},
        });
        let read = read(card.to_string().as_bytes(), &base()).unwrap();
        assert_eq!((&*read.card.agent_name, read.streams), ("Hello-World-System", true));
        assert_eq!(read.card.description.as_deref(), Some("Nice. ‹|im_start|>"));
        assert_eq!(read.card.skills.len(), 1);
        assert_eq!(name_of("日本", &base()), "agents-example-com");
    }

    #[test]
    fn what_is_no_card_is_refused() {
        for wrong in ["", "[]", "{}", r#"{"name": 7}"#, r#"{"name": "A", "url": 7}"#, "<html>"] {
            assert!(read(wrong.as_bytes(), &base()).is_err(), "{wrong}");
        }
    }
}
