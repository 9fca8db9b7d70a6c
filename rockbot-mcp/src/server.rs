//! The description of a server: how it is reached, and which of its tools an agent has.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use rockbot_core::process::Command;
use rockbot_core::tool::Effect;
use rockbot_core::{Digest, ExposeSecret, Secret};

/// Default time limit of a call.
const CALL_LIMIT: Duration = Duration::from_secs(60);

/// A server whose tools an agent gets: how it is reached, and which of its tools are used.
///
/// ```
/// use std::time::Duration;
/// use rockbot_mcp::McpServer;
///
/// let files = McpServer::process("files", "npx")
///     .args(["-y", "@modelcontextprotocol/server-filesystem", "/srv/shared"])
///     .deny_tools(["write_file"])
///     .time_limit(Duration::from_secs(20));
/// assert_eq!(files.name(), "files");
/// ```
#[derive(Clone)]
#[must_use]
pub struct McpServer {
    pub(crate) name: String,
    pub(crate) endpoint: Endpoint,
    pub(crate) allowed: Vec<String>,
    pub(crate) denied: Vec<String>,
    /// The tools whose calls a person approves.
    pub(crate) asked: Vec<String>,
    pub(crate) time_limit: Duration,
    pub(crate) is_trusted: bool,
}

/// The way to a server.
#[derive(Clone)]
pub(crate) enum Endpoint {
    /// A child process that speaks over its standard input and output.
    Process(Program),
    /// A server that is reached over HTTP.
    Web(Web),
    /// A bridge of this name on the bus, which is connected to the server.
    Bridge(String),
    /// A server in this process.
    #[cfg(test)]
    Pipe(std::sync::Arc<dyn Fn() -> tokio::io::DuplexStream + Send + Sync>),
}

/// The address of a server.
#[derive(Clone)]
pub(crate) struct Web {
    pub(crate) url: Url,
    pub(crate) headers: BTreeMap<String, Secret>,
    /// `true` if the transport of 2024 is tried first, `GET` of a stream of events.
    pub(crate) is_event_stream: bool,
    #[cfg(feature = "oauth")]
    pub(crate) oauth: Option<crate::McpOAuth>,
}

/// A program to start.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) command: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: BTreeMap<String, Secret>,
    pub(crate) folder: Option<PathBuf>,
}

impl Program {
    /// Returns the command that starts the program.
    pub(crate) fn command(&self) -> Command {
        let variables = self.variables.iter();
        let command = variables.fold(Command::new(&self.command), |command, (name, value)| {
            command.env(name, value.clone())
        });
        let command = command.args(&self.arguments);
        match &self.folder {
            Some(folder) => command.current_dir(folder),
            None => command,
        }
    }
}

impl McpServer {
    /// Creates a server that is a child process: `command` is found in `PATH`, and no shell reads it.
    ///
    /// The process gets a few harmless variables of the host's environment (`PATH`, `HOME`, `LANG`,
    /// `TZ`, …) and those of [`variable`](Self::variable). Its process group is killed when the host
    /// ends.
    pub fn process(name: impl Into<String>, command: impl Into<String>) -> Self {
        Self::of(
            name.into(),
            Endpoint::Process(Program {
                command: command.into(),
                arguments: Vec::new(),
                variables: BTreeMap::new(),
                folder: None,
            }),
        )
    }

    /// Creates a server that is reached over HTTP at `url`: streamable HTTP, or the older HTTP with
    /// server-sent events.
    ///
    /// Redirects are not followed, and no proxy of the environment is used, so that headers with keys
    /// reach this server alone.
    ///
    /// # Errors
    ///
    /// Returns the problem in words if the URL is none, or of another scheme than `http` and `https`.
    ///
    /// ```
    /// use rockbot_mcp::McpServer;
    ///
    /// let docs = McpServer::http("docs", "https://example.com/mcp")?.header("Authorization", "Bearer …");
    /// assert!(McpServer::http("docs", "javascript:alert(1)").is_err());
    /// # Ok::<(), String>(())
    /// ```
    pub fn http(name: impl Into<String>, url: &str) -> Result<Self, String> {
        let web = Web {
            url: parse_url(url)?,
            headers: BTreeMap::new(),
            is_event_stream: false,
            #[cfg(feature = "oauth")]
            oauth: None,
        };
        Ok(Self::of(name.into(), Endpoint::Web(web)))
    }

    /// Sets a header of all requests, such as the key of the server. Only a server that is reached
    /// over HTTP has some.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        if let Endpoint::Web(web) = &mut self.endpoint {
            web.headers.insert(name.into(), value.into());
        }
        self
    }

    /// Sets how the agent is authorized when the server demands it. Only a server that is reached
    /// over HTTP has it.
    ///
    /// Without it a server that demands an authorization gets the default, if the host has an
    /// [`AuthorizationHandler`](crate::AuthorizationHandler), and no header `Authorization` is set.
    #[cfg(feature = "oauth")]
    #[cfg_attr(docsrs, doc(cfg(feature = "oauth")))]
    pub fn oauth(mut self, oauth: crate::McpOAuth) -> Self {
        if let Endpoint::Web(web) = &mut self.endpoint {
            web.oauth = Some(oauth);
        }
        self
    }

    pub(crate) fn of(name: String, endpoint: Endpoint) -> Self {
        Self {
            name,
            endpoint,
            allowed: Vec::new(),
            denied: Vec::new(),
            asked: Vec::new(),
            time_limit: CALL_LIMIT,
            is_trusted: false,
        }
    }

    /// Sets the arguments of the program. Only a server that is a process has some.
    pub fn args<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        if let Endpoint::Process(program) = &mut self.endpoint {
            program.arguments = arguments.into_iter().map(Into::into).collect();
        }
        self
    }

    /// Sets a variable in the environment of the program, such as its key. Only a server that is a
    /// process has some.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        if let Endpoint::Process(program) = &mut self.endpoint {
            program.variables.insert(name.into(), value.into());
        }
        self
    }

    /// Uses the tools of these names only. Empty by default: all. The case of the names does not
    /// matter.
    pub fn allow_tools<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.allowed = names.into_iter().map(Into::into).collect();
        self
    }

    /// Leaves out the tools of these names, unless [`allow_tools`](Self::allow_tools) names some. A
    /// tool that is left out cannot be called by any name.
    pub fn deny_tools<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.denied = names.into_iter().map(Into::into).collect();
        self
    }

    /// Asks a person about each call of the tools of these names; `*` names all tools. Empty by
    /// default: calls are asked about only after text of others was read. The case of the names does
    /// not matter.
    pub fn needs_approval<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.asked = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the time limit of a call. Default 60 seconds.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Sets whether the operator vouches for the server. Default `false`.
    ///
    /// The descriptions of a trusted server do not make a turn untrusted, and its word on the effect
    /// of its tools (`readOnlyHint`, `idempotentHint`) is taken. The output of its tools stays
    /// untrusted.
    pub fn trusted(mut self, is_trusted: bool) -> Self {
        self.is_trusted = is_trusted;
        self
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the bridge that is connected to the server, if this host is not.
    pub(crate) fn bridge(&self) -> Option<&str> {
        match &self.endpoint {
            Endpoint::Bridge(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the key of its pins. A server of a bridge has pins of its own, whatever its name: no
    /// name has a slash.
    pub(crate) fn pin_key(&self) -> String {
        match self.bridge() {
            Some(bridge) => format!("{bridge}/{}", self.key()),
            None => self.key(),
        }
    }

    /// Returns the name by which servers are told apart: their names differ in more than case.
    pub(crate) fn key(&self) -> String {
        self.name.to_lowercase()
    }

    /// Returns `true` if the agent may have the tool of this name.
    pub(crate) fn admits(&self, tool: &str) -> bool {
        if self.allowed.is_empty() {
            !is_in(&self.denied, tool)
        } else {
            is_in(&self.allowed, tool)
        }
    }

    /// Returns `true` if a person approves each call of the tool of this name.
    pub(crate) fn asks_about(&self, tool: &str) -> bool {
        is_in(&self.asked, tool) || is_in(&self.asked, "*")
    }

    /// Returns the effect of a call of which the server claims `claimed`: only an operator's word
    /// makes it count.
    pub(crate) fn effect(&self, claimed: Effect) -> Effect {
        if self.is_trusted { claimed } else { Effect::Mutating }
    }

    /// Returns the digest of how the server is reached, without its keys: the program with its
    /// arguments and the names of its variables, or the address.
    pub(crate) fn endpoint_digest(&self) -> Digest {
        match &self.endpoint {
            Endpoint::Process(program) => {
                let arguments = format!("{:?}", (&program.arguments, &program.folder));
                let parts = ["process", &program.command, &arguments];
                Digest::of(parts.into_iter().chain(program.variables.keys().map(String::as_str)))
            }
            Endpoint::Web(web) => Digest::of(["web", web.url.as_str()]),
            Endpoint::Bridge(name) => Digest::of(["bridge", name]),
            #[cfg(test)]
            Endpoint::Pipe(_) => Digest::of(["pipe"]),
        }
    }

    /// Returns the digest of everything that makes a difference for the connection, secrets included.
    pub(crate) fn digest(&self) -> Digest {
        let mut parts = self.endpoint.identity();
        parts.push(self.name.clone());
        parts.push(format!(
            "{:?}",
            (
                &self.allowed,
                &self.denied,
                &self.asked,
                self.time_limit,
                self.is_trusted
            )
        ));
        Digest::of(parts)
    }
}

fn is_in(names: &[String], tool: &str) -> bool {
    names.iter().any(|name| name.eq_ignore_ascii_case(tool))
}

/// Parses the URL of a server.
pub(crate) fn parse_url(url: &str) -> Result<Url, String> {
    match Url::parse(url.trim()) {
        Ok(url) if ["http", "https"].contains(&url.scheme()) && url.has_host() => Ok(url),
        _ => Err("the URL must begin with http:// or https:// and name a host".to_owned()),
    }
}

impl Endpoint {
    /// Returns everything that makes a difference, secrets included.
    fn identity(&self) -> Vec<String> {
        match self {
            Self::Process(program) => {
                let variables: Vec<_> = program.variables.iter().map(exposed).collect();
                let rest = format!("{:?}", (&program.arguments, &program.folder, variables));
                vec!["process".to_owned(), program.command.clone(), rest]
            }
            Self::Web(web) => {
                let headers: Vec<_> = web.headers.iter().map(exposed).collect();
                #[cfg_attr(not(feature = "oauth"), expect(unused_mut, reason = "OAuth alone adds to it"))]
                let mut identity = vec![
                    "web".to_owned(),
                    web.url.to_string(),
                    format!("{headers:?}{}", web.is_event_stream),
                ];
                #[cfg(feature = "oauth")]
                identity.extend(web.oauth.iter().map(|oauth| oauth.identity().to_string()));
                identity
            }
            Self::Bridge(name) => vec!["bridge".to_owned(), name.clone()],
            #[cfg(test)]
            Self::Pipe(_) => vec!["pipe".to_owned()],
        }
    }

    /// Returns the way to the server in words, without its secrets.
    fn shown(&self) -> String {
        match self {
            Self::Process(program) => format!("`{}` with {} arguments", program.command, program.arguments.len()),
            // Neither path nor query: either may hold a key.
            Self::Web(web) => web.url.origin().ascii_serialization(),
            Self::Bridge(name) => format!("the bridge `{name}`"),
            #[cfg(test)]
            Self::Pipe(_) => "a pipe".to_owned(),
        }
    }
}

/// Returns a variable or a header with its value, for a digest alone.
fn exposed((name, value): (&String, &Secret)) -> String {
    format!("{name}={}", value.expose_secret())
}

/// Shows the way to the server without its secrets.
impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer")
            .field("name", &self.name)
            .field("endpoint", &self.endpoint.shown())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allow_list_takes_precedence_and_case_does_not_matter() {
        let server = McpServer::process("s", "x").deny_tools(["Drop"]);
        assert_eq!((server.admits("drop"), server.admits("get")), (false, true));
        let server = server.allow_tools(["get", "DROP"]);
        assert_eq!((server.admits("drop"), server.admits("put")), (true, false));
    }

    #[test]
    fn a_changed_secret_is_another_server_and_no_secret_is_printed() {
        let server = |key: &str| McpServer::process("s", "x").variable("KEY", key);
        assert_eq!(server("a").digest(), server("a").digest());
        assert_ne!(server("a").digest(), server("b").digest());
        assert!(!format!("{:?}", server("sesame")).contains("sesame"));
    }
}
