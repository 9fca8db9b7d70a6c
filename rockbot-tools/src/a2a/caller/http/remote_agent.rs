//! An agent that the operator names by its URL: [`RemoteAgent`].

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use rockbot_core::config::{Config, ConfigError, Section};
use rockbot_core::service::AgentCard;
use rockbot_core::{BoxError, ExposeSecret as _, Secret};
use serde::Deserialize;

use super::account::Account;
use crate::a2a_callers::is_agent_name;

/// An agent that is reached over HTTP, with the key for it.
///
/// The agent's card is read below the URL, at `/.well-known/agent-card.json`. The key, or the token
/// of the account, goes to the origin of this URL alone, also if the card names an interface
/// elsewhere.
///
/// ```
/// use rockbot_tools::a2a::{A2aCaller, RemoteAgent};
///
/// let library = RemoteAgent::new("https://library.example.com").named("library").key("sesame".to_owned());
/// let caller = A2aCaller::new().agent_at(library).agent_at("https://weather.example.com");
/// ```
#[derive(Clone)]
#[must_use]
pub struct RemoteAgent {
    pub(in crate::a2a::caller) url: String,
    pub(in crate::a2a::caller) name: Option<String>,
    header: Option<String>,
    key: Option<Secret>,
    pub(super) account: Option<Account>,
}

impl RemoteAgent {
    /// Names the agent at a URL, for calls without a key.
    pub fn new(url: impl Into<String>) -> Self {
        let url: String = url.into();
        Self {
            url: url.trim().trim_end_matches('/').to_owned(),
            name: None,
            header: None,
            key: None,
            account: None,
        }
    }

    /// Sets the name by which the model calls the agent: 1 to 64 letters, digits, `-` and `_`.
    /// Default: the name in its card, with `-` for all other characters.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the key, which is sent as a bearer token. Default: no key.
    pub fn key(mut self, key: impl Into<Secret>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sends the key in this header instead, as `X-API-Key` for example.
    pub fn key_header(mut self, header: impl Into<String>) -> Self {
        self.header = Some(header.into());
        self
    }

    /// Sends tokens of this host's own account at an authorization server (OAuth 2.0 client
    /// credentials) in place of a key. `issuer` is the identifier of the server, such as
    /// `https://login.example.com`; it alone gets the secret, and it may be in a private network.
    /// Default: no account.
    pub fn client_credentials(
        mut self,
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        secret: impl Into<Secret>,
    ) -> Self {
        self.account = Some(Account {
            issuer: issuer.into(),
            client_id: client_id.into(),
            secret: secret.into(),
            scopes: Vec::new(),
        });
        self
    }

    /// Sets the scopes that are asked for with
    /// [`client_credentials`](Self::client_credentials). Default: the scopes that the authorization
    /// server grants unasked. Scopes that the agent demands are not asked for, since the agent
    /// could use such a token elsewhere.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        if let Some(account) = &mut self.account {
            account.scopes = scopes.into_iter().map(Into::into).collect();
        }
        self
    }

    /// Returns the card of an agent that the operator gives a name.
    pub(in crate::a2a::caller) fn card(&self) -> Option<AgentCard> {
        let mut card = AgentCard::new(self.name.clone()?);
        card.url = Some(self.url.clone());
        Some(card)
    }

    /// Checks name, key and account.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.name.as_deref().is_some_and(|name| !is_agent_name(name)) {
            return Err(format!(
                "the agent at `{}` has a name of 1 to 64 letters, digits, `-` and `_`",
                self.url
            ));
        }
        if let Some(account) = &self.account {
            if self.key.is_some() {
                return Err(format!(
                    "the agent at `{}` has a key and an account: leave one out",
                    self.url
                ));
            }
            if account.issuer_url().is_none() || account.client_id.is_empty() {
                return Err(format!(
                    "the account of the agent at `{}` has an id, and an issuer such as https://login.example.com",
                    self.url
                ));
            }
        }
        match self.key_field() {
            Some(Err(())) => Err(format!(
                "the key of the agent at `{}`, or the name of its header, has characters that no header may have",
                self.url
            )),
            _ => Ok(()),
        }
    }

    /// Returns the header with the key, if the agent has a key.
    pub(super) fn key_field(&self) -> Option<Result<(HeaderName, HeaderValue), ()>> {
        let key = self.key.as_ref()?.expose_secret();
        let field = match &self.header {
            Some(name) => HeaderName::try_from(name).ok().zip(HeaderValue::from_str(key).ok()),
            None => HeaderValue::from_str(&format!("Bearer {key}"))
                .ok()
                .map(|value| (AUTHORIZATION, value)),
        };
        Some(field.ok_or(()))
    }
}

impl From<&str> for RemoteAgent {
    fn from(url: &str) -> Self {
        Self::new(url)
    }
}

impl From<String> for RemoteAgent {
    fn from(url: String) -> Self {
        Self::new(url)
    }
}

impl fmt::Debug for RemoteAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteAgent")
            .field("name", &self.name)
            .field("header", &self.header)
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}

/// Reads the agents of the settings: `A2A.Agents`, a list of sections with `Url`, `Name`, `Key`,
/// `KeyHeader` and a section `OAuth`, or of URLs.
pub(in crate::a2a::caller) fn configured(config: &Config) -> Result<Vec<RemoteAgent>, ConfigError> {
    let section = config.section("A2A")?;
    if let Ok(Some(urls)) = section.texts("Agents") {
        return Ok(urls.into_iter().map(RemoteAgent::new).collect());
    }
    let agent = |one: &Section<'_>| {
        let url: Option<String> = one.get("Url")?;
        Ok(RemoteAgent {
            name: one.get("Name")?,
            key: one.get("Key")?,
            header: one.get("KeyHeader")?,
            account: account(&one.section("OAuth")?)?,
            ..RemoteAgent::new(url.ok_or_else(|| one.missing("Url", "the URL of an agent"))?)
        })
    };
    section.items("Agents")?.iter().map(agent).collect()
}

/// Reads the account of an agent: `Issuer`, `ClientId`, `ClientSecret` and `Scopes`.
fn account(section: &Section<'_>) -> Result<Option<Account>, ConfigError> {
    if section.names().is_empty() {
        return Ok(None);
    }
    let text = |name: &str, expected| {
        let text: Option<String> = section.get(name)?;
        text.ok_or_else(|| section.missing(name, expected))
    };
    let secret: Option<Secret> = section.get("ClientSecret")?;
    Ok(Some(Account {
        issuer: text("Issuer", "the issuer of the authorization server")?,
        client_id: text("ClientId", "the id of the account")?,
        secret: secret.ok_or_else(|| section.missing("ClientSecret", "the secret of the account"))?,
        scopes: section.texts("Scopes")?.unwrap_or_default(),
    }))
}

/// Reads the agents with a URL from the text of a file `well-known-agents.json`, as the original
/// writes it, with their keys.
pub(in crate::a2a::caller) fn well_known(text: &str) -> Result<Vec<RemoteAgent>, BoxError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry {
        agent_name: String,
        #[serde(default)]
        url: Option<String>,
        #[serde(default)]
        auth_header_name: Option<String>,
        #[serde(default)]
        auth_header_value_base64: Option<String>,
    }
    // The text of an error could quote a key.
    let entries: Vec<Entry> = serde_json::from_str(text).map_err(|_| "the file of agents is no list of agents")?;
    let mut agents = Vec::new();
    for entry in entries {
        let Some(url) = entry.url else { continue };
        let mut agent = RemoteAgent::new(url).named(entry.agent_name);
        if let Some(value) = entry.auth_header_value_base64 {
            let value = STANDARD
                .decode(value)
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok());
            let value = value.ok_or_else(|| format!("`authHeaderValueBase64` of `{}` is not Base64", agent.url))?;
            agent = agent
                .key(value)
                .key_header(entry.auth_header_name.unwrap_or_else(|| "Authorization".to_owned()));
        }
        agents.push(agent);
    }
    Ok(agents)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(agent: &RemoteAgent) -> Option<(String, String)> {
        let (name, value) = agent.key_field()?.ok()?;
        Some((name.to_string(), value.to_str().unwrap().to_owned()))
    }

    #[test]
    fn the_original_s_file_names_agents_with_their_keys() {
        let text = r#"[
            {"agentName": "Bus"},
            {"agentName": "Open", "url": "https://open.example/"},
            {"agentName": "Closed", "url": "https://closed.example", "authHeaderName": "X-Api-Key",
             "authHeaderValueBase64": "c2VzYW1l"}]"#;
        let agents = well_known(text).unwrap();
        let urls: Vec<_> = agents
            .iter()
            .map(|agent| (agent.url.as_str(), agent.name.as_deref()))
            .collect();
        assert_eq!(
            urls,
            [
                ("https://open.example", Some("Open")),
                ("https://closed.example", Some("Closed"))
            ]
        );
        let key = ("x-api-key".to_owned(), "sesame".to_owned());
        assert_eq!((key_of(&agents[0]), key_of(&agents[1])), (None, Some(key)));
        assert!(!format!("{agents:?}").contains("sesame"));
        let wrong = text.replace("c2VzYW1l", "sesame?");
        let error = well_known(&wrong).unwrap_err().to_string();
        assert_eq!(
            error,
            "`authHeaderValueBase64` of `https://closed.example` is not Base64"
        );
    }

    #[test]
    fn the_settings_name_agents_as_sections_or_as_urls() {
        let read = |text: &str| configured(&Config::new().with_text("a.toml", text).unwrap());
        let agents = read(
            "[[A2A.Agents]]\nUrl = \"https://a\"\nKey = \"sesame\"\n[[A2A.Agents]]\nUrl = \"https://b\"\nName = \"b\"",
        )
        .unwrap();
        assert_eq!(
            key_of(&agents[0]),
            Some(("authorization".to_owned(), "Bearer sesame".to_owned()))
        );
        assert_eq!(
            (agents[0].card(), agents[1].card().unwrap().url.as_deref()),
            (None, Some("https://b"))
        );
        for text in [
            "[A2A]\nAgents = [\"https://a\", \"https://b\"]",
            "[A2A]\nAgents = \"https://a, https://b\"",
        ] {
            let urls: Vec<_> = read(text).unwrap().into_iter().map(|agent| agent.url).collect();
            assert_eq!(urls, ["https://a", "https://b"]);
        }
        assert!(
            read("[[A2A.Agents]]\nName = \"a\"")
                .unwrap_err()
                .to_string()
                .contains("the URL of an agent")
        );
    }
}
