//! Parses one server of a configuration file.

use std::collections::BTreeMap;
use std::time::Duration;

use rockbot_core::Secret;
use serde_json::{Map, Value};

use super::expand::{Variables, expand};
use super::members;
#[cfg(feature = "oauth")]
use crate::McpOAuth;
use crate::server::{Endpoint, McpServer, Program, Web, parse_url};

/// Maximum time limit of a call.
pub(crate) const MAX_TIME_LIMIT: Duration = Duration::from_secs(900);

/// The members that name the transport, and their values without hyphens.
const TRANSPORT_KEYS: [&str; 4] = ["transportMode", "type", "transport", "transportType"];
const TRANSPORTS: [&str; 5] = ["stdio", "http", "streamablehttp", "sse", "auto"];

/// The members with the address of a server that is reached over HTTP.
const URLS: [&str; 3] = ["url", "serverUrl", "httpUrl"];

/// Parses an entry. Returns `None` if it is disabled.
///
/// # Errors
///
/// Returns the problem in words, without any value of the entry.
pub(super) fn parse(name: &str, value: &Value, variables: &Variables<'_>) -> Result<Option<McpServer>, String> {
    let members = value.as_object().ok_or("it must be an object")?;
    let entry = Entry { members, variables };
    if entry.flag("disabled")?.unwrap_or(false) {
        return Ok(None);
    }
    check_name(name)?;
    members::check(members)?;
    entry.check_transport()?;
    let mut server = McpServer::of(name.to_owned(), entry.endpoint()?);
    server.allowed = entry.texts("allowedTools")?;
    server.denied = entry.texts("deniedTools")?;
    server.asked = entry.texts("needsApproval")?;
    server.is_trusted = entry.flag("trusted")?.unwrap_or(false);
    if let Some(limit) = entry.time_limit()? {
        server.time_limit = limit;
    }
    Ok(Some(server))
}

/// Checks that a name can be shown and named by a model.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_alphanumeric() || "_-. ".contains(c);
    if !name.trim().is_empty() && name.chars().count() <= 64 && name.chars().all(is_plain) {
        Ok(())
    } else {
        Err("its name must be 1 to 64 letters, digits, spaces, `_`, `-` and `.`".to_owned())
    }
}

/// The members of an entry.
struct Entry<'a> {
    members: &'a Map<String, Value>,
    variables: &'a Variables<'a>,
}

impl Entry<'_> {
    fn endpoint(&self) -> Result<Endpoint, String> {
        if let Some(command) = self.text("command")? {
            return Ok(Endpoint::Process(Program {
                command,
                arguments: self.texts("args")?,
                variables: self.secrets("env")?,
                folder: self.text("cwd")?.map(Into::into),
            }));
        }
        #[cfg(not(feature = "oauth"))]
        if self.members.contains_key("oauth") {
            return Err("`oauth` needs a build with the feature `oauth`".to_owned());
        }
        for key in URLS {
            if let Some(url) = self.text(key)? {
                return Ok(Endpoint::Web(Web {
                    url: parse_url(&url)?,
                    headers: self.secrets("headers")?,
                    is_event_stream: self.is_event_stream()?,
                    #[cfg(feature = "oauth")]
                    oauth: self.oauth()?,
                }));
            }
        }
        Err("it has neither `command` nor `url`: write how it is reached".to_owned())
    }

    /// Returns how the agent is authorized: `clientId`, `clientSecret`, `clientMetadataUrl`,
    /// `issuer`, `scopes`, `redirectUri`, `grantType`.
    #[cfg(feature = "oauth")]
    fn oauth(&self) -> Result<Option<McpOAuth>, String> {
        let Some(value) = self.members.get("oauth") else {
            return Ok(None);
        };
        let members = value.as_object().ok_or("`oauth` must be an object")?;
        let inner = Entry {
            members,
            variables: self.variables,
        };
        let mut oauth = McpOAuth::default().scopes(inner.texts("scopes")?);
        if let Some(id) = inner.text("clientId")? {
            oauth = oauth.client(id);
        }
        let issuer = inner.text("issuer")?;
        if let Some(secret) = inner.text("clientSecret")? {
            let missing = "`oauth.clientSecret` needs `oauth.issuer`, the authorization server that alone gets it: write its \
                           address, such as `https://login.example.com`";
            oauth = oauth.secret(secret, issuer.clone().ok_or(missing)?);
        }
        if let Some(issuer) = issuer {
            oauth = oauth.issuer(issuer);
        }
        if let Some(url) = inner.text("clientMetadataUrl")? {
            oauth = oauth.client_metadata_url(url);
        }
        if let Some(uri) = inner.text("redirectUri")? {
            oauth = oauth.redirect_uri(uri);
        }
        match inner.text("grantType")?.as_deref() {
            None | Some("authorization_code") => Ok(Some(oauth)),
            Some("client_credentials") => Ok(Some(oauth.client_credentials())),
            Some(_) => Err("`oauth.grantType` must be `authorization_code` or `client_credentials`".to_owned()),
        }
    }

    /// Returns `true` if the entry names the transport of 2024.
    fn is_event_stream(&self) -> Result<bool, String> {
        for key in TRANSPORT_KEYS {
            if let Some(kind) = self.text(key)? {
                return Ok(kind.eq_ignore_ascii_case("sse"));
            }
        }
        Ok(false)
    }

    /// Checks that the transport is a known one.
    fn check_transport(&self) -> Result<(), String> {
        for key in TRANSPORT_KEYS {
            let Some(kind) = self.text(key)? else { continue };
            let letters = kind.replace(['-', '_'], "").to_ascii_lowercase();
            if !TRANSPORTS.contains(&letters.as_str()) {
                return Err(format!(
                    "`{key}` must be `stdio`, `http`, `streamable-http`, `sse` or `auto`"
                ));
            }
        }
        Ok(())
    }

    /// Returns the time limit of a call: milliseconds.
    fn time_limit(&self) -> Result<Option<Duration>, String> {
        for key in ["toolTimeoutMs", "timeout"] {
            let Some(value) = self.members.get(key) else {
                continue;
            };
            let limit = value.as_u64().filter(|limit| *limit > 0).map(Duration::from_millis);
            let limit = limit.ok_or_else(|| format!("`{key}` must be a number of milliseconds above zero"))?;
            return Ok(Some(limit.min(MAX_TIME_LIMIT)));
        }
        Ok(None)
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, String> {
        let flag = |value: &Value| value.as_bool().ok_or_else(|| format!("`{key}` must be true or false"));
        self.members.get(key).map(flag).transpose()
    }

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        let text = |value: &Value| self.expanded(key, value);
        self.members.get(key).map(text).transpose()
    }

    fn texts(&self, key: &str) -> Result<Vec<String>, String> {
        let Some(value) = self.members.get(key) else {
            return Ok(Vec::new());
        };
        let items = value
            .as_array()
            .ok_or_else(|| format!("`{key}` must be a list of texts"))?;
        items.iter().map(|item| self.expanded(key, item)).collect()
    }

    fn secrets(&self, key: &str) -> Result<BTreeMap<String, Secret>, String> {
        let Some(value) = self.members.get(key) else {
            return Ok(BTreeMap::new());
        };
        let members = value
            .as_object()
            .ok_or_else(|| format!("`{key}` must be an object of texts"))?;
        let secret = |(name, value): (&String, &Value)| {
            let value = self.expanded(&format!("{key}.{name}"), value)?;
            Ok((name.clone(), Secret::from(value)))
        };
        members.iter().map(secret).collect()
    }

    fn expanded(&self, key: &str, value: &Value) -> Result<String, String> {
        let text = value.as_str().ok_or_else(|| format!("`{key}` must be text"))?;
        expand(text, self.variables).map_err(|problem| format!("`{key}`: {problem}"))
    }
}
