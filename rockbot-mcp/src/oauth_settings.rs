//! The identity of an agent for the authorization server of an MCP server: [`McpOAuth`].

use rockbot_core::{Digest, ExposeSecret, Secret};

/// Default of the redirect URI. Nothing needs to listen there: the user copies the address that
/// the browser shows.
const REDIRECT_URI: &str = "http://127.0.0.1:8976/callback";

/// The settings of an agent's authorization by an MCP server that demands it.
///
/// The default registers the agent with the authorization server, asks for the scopes that the
/// server names, and lets the user agree in a browser. The grant is one account that serves the
/// whole host: the calls of all its principals.
///
/// ```
/// use rockbot_mcp::{McpOAuth, McpServer};
///
/// let oauth = McpOAuth::default()
///     .client("my-agent")
///     .issuer("https://login.example.com")
///     .scopes(["files:read"]);
/// let docs = McpServer::http("docs", "https://example.com/mcp")?.oauth(oauth);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct McpOAuth {
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret: Option<Secret>,
    pub(crate) client_metadata_url: Option<String>,
    pub(crate) issuer: Option<String>,
    pub(crate) scopes: Vec<String>,
    pub(crate) redirect_uri: String,
    pub(crate) is_own_account: bool,
}

impl Default for McpOAuth {
    fn default() -> Self {
        Self {
            client_id: None,
            client_secret: None,
            client_metadata_url: None,
            issuer: None,
            scopes: Vec::new(),
            redirect_uri: REDIRECT_URI.to_owned(),
            is_own_account: false,
        }
    }
}

impl McpOAuth {
    /// Sets the client that was registered with the authorization server. Default: the agent
    /// registers itself.
    pub fn client(mut self, id: impl Into<String>) -> Self {
        self.client_id = Some(id.into());
        self
    }

    /// Sets the secret of the client, and the [issuer](Self::issuer) that alone gets it: a hostile
    /// server could otherwise name an authorization server of its own. Default: none, a public
    /// client.
    pub fn secret(mut self, secret: impl Into<Secret>, issuer: impl Into<String>) -> Self {
        self.client_secret = Some(secret.into());
        self.issuer(issuer)
    }

    /// Sets the address of the agent's own client metadata document, such as
    /// `https://example.com/agent.json`. Authorization servers that support such documents (client ID
    /// metadata documents) know the agent by it without a registration. Other authorization servers
    /// register the agent. Its redirect URIs must have the [`redirect_uri`](Self::redirect_uri).
    /// Default: none.
    pub fn client_metadata_url(mut self, url: impl Into<String>) -> Self {
        self.client_metadata_url = Some(url.into());
        self
    }

    /// Sets the only authorization server that may authorize the agent, by its issuer identifier such
    /// as `https://login.example.com`; the server is not connected if it names another one. Default:
    /// the authorization server that the server names.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// Sets the scopes to ask for. Default: the scopes that the server names.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the address where the browser is sent at the end. Default
    /// `http://127.0.0.1:8976/callback`.
    pub fn redirect_uri(mut self, uri: impl Into<String>) -> Self {
        self.redirect_uri = uri.into();
        self
    }

    /// Authorizes the agent by the client's own id and secret, without a user (client credentials).
    pub fn client_credentials(mut self) -> Self {
        self.is_own_account = true;
        self
    }

    /// Checks the issuer of an authorization server before anything is sent to its endpoints.
    pub(crate) fn check_issuer(&self, found: Option<&str>) -> Result<(), String> {
        let plain = |issuer: &str| issuer.trim_end_matches('/').to_owned();
        match &self.issuer {
            Some(issuer) if found.map(plain) != Some(plain(issuer)) => Err(
                "its authorization server is another one than the issuer of its configuration: correct the issuer if the \
                 server has changed it, and else remove the server"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    /// Returns everything that makes a difference, secrets included, for a digest.
    pub(crate) fn identity(&self) -> Digest {
        let secret = self.client_secret.as_ref().map(|secret| secret.expose_secret());
        let rest = format!(
            "{:?}",
            (
                &self.client_id,
                &self.client_metadata_url,
                &self.issuer,
                &self.scopes,
                &self.redirect_uri,
                self.is_own_account
            )
        );
        Digest::of([rest.as_str(), secret.unwrap_or_default()])
    }
}
