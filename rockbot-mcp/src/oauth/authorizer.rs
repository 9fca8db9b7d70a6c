//! The authorization of a connection: kept tokens first, then the program's own account or the
//! user.
//!
//! A call that a server refuses with a challenge has had no effect, so it is repeated once,
//! whatever its effect, when the user has granted the scopes that the challenge names in addition
//! to the scopes granted before. A server asks so three times at most, and a refusal leaves it
//! connected.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use rmcp::transport::auth::{
    AuthClient, AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationRequest, AuthorizationSession,
    ClientCredentialsConfig, CredentialStore as _, OAuthClientConfig, WWWAuthenticateParams,
};
use rockbot_core::support::loggable;
use rockbot_core::{Digest, ExposeSecret};
use rockbot_tools::egress::EgressPolicy;
use serde_json::Value;
use tokio::time::timeout;

use super::CredentialStore;
use super::handler::{Authorization, AuthorizationAnswer, AuthorizationHandler};
use super::http::PolicedHttp;
use super::prompts::{Callback, Prompts, check_callback};
use super::tokens::{RefreshLocks, Tokens};
use crate::oauth_settings::McpOAuth;
use crate::server::{Endpoint, McpServer, Web, parse_url};

/// Maximum time for the user to answer.
const PATIENCE: Duration = Duration::from_secs(300);

/// Maximum time of the requests before the user is asked, and of the requests afterwards.
const PHASE: Duration = Duration::from_secs(60);

/// Name that an agent registers itself with.
const CLIENT_NAME: &str = "rockbot";

/// Returns the client whose requests have the tokens that `manager` keeps.
pub(crate) fn authorized_client(http: reqwest::Client, manager: AuthorizationManager) -> AuthClient<reqwest::Client> {
    AuthClient::new(http, manager)
}

/// The parts that authorize connections.
#[derive(Clone)]
pub(crate) struct Authorizer {
    pub(crate) handler: Option<Arc<dyn AuthorizationHandler>>,
    pub(crate) store: Arc<dyn CredentialStore>,
    pub(crate) policy: EgressPolicy,
    /// Outcomes of asking the user, who is not asked again after a refusal.
    prompts: Prompts,
    refreshing: RefreshLocks,
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer")
            .field("handler", &self.handler)
            .finish_non_exhaustive()
    }
}

impl Authorizer {
    pub(crate) fn new(
        handler: Option<Arc<dyn AuthorizationHandler>>,
        store: Arc<dyn CredentialStore>,
        policy: EgressPolicy,
    ) -> Self {
        Self {
            handler,
            store,
            policy,
            prompts: Prompts::default(),
            refreshing: RefreshLocks::default(),
        }
    }

    /// Returns `true` if a demand of the server can be met. An operator's own header stays as it is.
    pub(crate) fn serves(&self, web: &Web) -> bool {
        let has_header = web
            .headers
            .keys()
            .any(|name| name.eq_ignore_ascii_case("authorization"));
        !has_header && (web.oauth.is_some() || self.handler.is_some())
    }

    /// Notes that a server demands another authorization for a call. Returns `false` if none can be
    /// had.
    ///
    /// Only further scopes are asked for at once. In place of tokens that are of no use any more,
    /// others may be kept by now, which another host with the same store has got: the next connection
    /// tries them first.
    pub(crate) fn demand(&self, server: &McpServer, challenge: &str) -> bool {
        let Endpoint::Web(web) = &server.endpoint else {
            return false;
        };
        let demanded = WWWAuthenticateParams::parse(challenge, &web.url);
        let is_noted = || self.prompts.demand(&key(server.name(), web), challenge);
        self.serves(web) && (!demanded.is_insufficient_scope() || is_noted())
    }

    /// Returns the further authorization that a call has demanded, if the user grants it. The
    /// authorization that was granted before serves other calls.
    pub(crate) async fn demanded(&self, server: &str, web: &Web) -> Option<AuthorizationManager> {
        let challenge = self.prompts.take_demand(&key(server, web))?;
        let granted = self.authorize(server, web, &challenge).await;
        granted
            .inspect_err(|reason| {
                tracing::warn!(
                    server,
                    reason,
                    "an MCP server demands an authorization that it does not get"
                )
            })
            .ok()
    }

    /// Returns the manager with the tokens that are kept for the server, if there are any.
    pub(crate) async fn kept(&self, server: &str, web: &Web) -> Result<AuthorizationManager, String> {
        within_phase(self.restore(server, web)).await
    }

    async fn restore(&self, server: &str, web: &Web) -> Result<AuthorizationManager, String> {
        let tokens = self.tokens(server, web);
        let stored = tokens.load().await.map_err(words)?;
        let Some(stored) = stored.filter(|stored| stored.token_response.is_some()) else {
            return Ok(self.manager(web).await?.0);
        };
        let oauth = web.oauth.clone().unwrap_or_default();
        let (mut manager, metadata) = self.discover(web, &oauth, None).await?;
        if metadata.issuer != stored.issuer {
            // Neither the tokens nor the client's secret are for an authorization server that has not
            // granted them.
            tracing::warn!(
                server,
                "the kept tokens of an MCP server are another authorization server's, and not used"
            );
            return Ok(manager);
        }
        manager.set_metadata(metadata);
        manager.set_credential_store(tokens);
        let has_tokens = manager.initialize_from_store().await.map_err(words)?;
        if let (true, Some(id), Some(secret)) = (has_tokens, &oauth.client_id, &oauth.client_secret) {
            let config = OAuthClientConfig::new(id, &oauth.redirect_uri).with_client_secret(secret.expose_secret());
            manager.configure_client(config).map_err(words)?;
        }
        Ok(manager)
    }

    /// Gets the authorization that the server demands by `challenge`.
    pub(crate) async fn authorize(
        &self,
        server: &str,
        web: &Web,
        challenge: &str,
    ) -> Result<AuthorizationManager, String> {
        let oauth = web.oauth.clone().unwrap_or_default();
        if oauth.is_own_account {
            within_phase(self.log_in(server, web, &oauth, challenge)).await
        } else {
            self.ask(server, web, &oauth, challenge).await
        }
    }

    /// Uses the program's own account.
    async fn log_in(
        &self,
        server: &str,
        web: &Web,
        oauth: &McpOAuth,
        challenge: &str,
    ) -> Result<AuthorizationManager, String> {
        let config = own_account(oauth, web)?;
        let (mut manager, metadata) = self.discover(web, oauth, Some(challenge)).await?;
        manager.set_metadata(metadata);
        manager.set_credential_store(self.tokens(server, web));
        manager.validate_client_credentials_metadata(&config).map_err(words)?;
        manager.configure_client_credentials(&config).map_err(words)?;
        manager.exchange_client_credentials(&config).await.map_err(words)?;
        Ok(manager)
    }

    /// Sends the user to the page of the authorization server, and exchanges the code that comes back.
    async fn ask(
        &self,
        server: &str,
        web: &Web,
        oauth: &McpOAuth,
        challenge: &str,
    ) -> Result<AuthorizationManager, String> {
        let no_handler = "the server asks for an authorization, and the host asks no user: set its header \
                          `Authorization`, or give the host an `AuthorizationHandler`";
        let handler = self.handler.as_ref().ok_or(no_handler)?;
        let key = key(server, web);
        self.prompts.check(&key)?;
        let session = within_phase(self.begin(server, web, oauth, challenge)).await?;
        let page = parse_url(&session.auth_url);
        let page = page.map_err(|_| "the address of its authorization page is none that can be opened")?;
        let asked = handler.authorize(Authorization {
            server: server.to_owned(),
            url: page.to_string(),
            redirect_uri: oauth.redirect_uri.clone(),
        });
        let ended = match timeout(PATIENCE, asked).await {
            Ok(AuthorizationAnswer::Redirected(url)) => finish(&session, url.trim(), &page, oauth).await,
            Ok(AuthorizationAnswer::Decline) | Err(_) => Err(Callback::Declined),
        };
        match ended {
            Ok(()) => {
                self.prompts.forget(&key);
                Ok(session.auth_manager)
            }
            Err(Callback::Declined) => {
                self.prompts.decline(&key);
                Err("its authorization was declined".to_owned())
            }
            Err(Callback::Failed(problem)) => {
                self.prompts.fail(&key);
                Err(problem)
            }
        }
    }

    /// Prepares the page of the authorization server.
    async fn begin(
        &self,
        server: &str,
        web: &Web,
        oauth: &McpOAuth,
        challenge: &str,
    ) -> Result<AuthorizationSession, String> {
        let (mut manager, metadata) = self.discover(web, oauth, Some(challenge)).await?;
        manager.set_metadata(metadata.clone());
        let tokens = self.tokens(server, web);
        let scopes = further_scopes(oauth, &tokens, &metadata, challenge, web).await?;
        manager.set_credential_store(tokens);
        let mut request = AuthorizationRequest::new(&oauth.redirect_uri).with_scopes(scopes);
        match (&oauth.client_id, &oauth.client_metadata_url) {
            (Some(id), _) => {
                request.client_id = Some(id.clone());
                let secret = oauth.client_secret.as_ref();
                request.client_secret = secret.map(|secret| secret.expose_secret().to_owned());
            }
            (None, Some(url)) if reads_client_metadata(&metadata) => request.client_metadata_url = Some(url.clone()),
            (None, _) => {
                let key = key(server, web);
                let client = self.client(&key, &mut manager, metadata, oauth).await?;
                (request.client_id, request.client_secret) = (Some(client.client_id), client.client_secret);
            }
        }
        let session = AuthorizationSession::new(manager, request).await;
        session.map_err(|(_, error)| words(error))
    }

    /// Returns the client that an earlier attempt has registered, or registers one.
    async fn client(
        &self,
        key: &str,
        manager: &mut AuthorizationManager,
        metadata: AuthorizationMetadata,
        oauth: &McpOAuth,
    ) -> Result<OAuthClientConfig, String> {
        if let Some(client) = self.prompts.client(key, metadata.issuer.as_deref()) {
            return Ok(client);
        }
        let scopes = if oauth.scopes.is_empty() {
            manager.select_scopes(None, &[])
        } else {
            oauth.scopes.clone()
        };
        let scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
        let client = manager.register_client(CLIENT_NAME, &oauth.redirect_uri, &scopes).await;
        let client = client.map_err(words)?;
        self.prompts.set_client(key, metadata.issuer, client.clone());
        Ok(client)
    }

    /// Looks up the authorization server, and checks that it may authorize the agent.
    async fn discover(
        &self,
        web: &Web,
        oauth: &McpOAuth,
        challenge: Option<&str>,
    ) -> Result<(AuthorizationManager, AuthorizationMetadata), String> {
        let (manager, http) = self.manager(web).await?;
        let resolved = manager
            .resolve_metadata_from_challenge(challenge)
            .await
            .map_err(words)?;
        let issuer = resolved.metadata.issuer.as_deref();
        if issuer.is_some_and(|issuer| !http.has_found_at(issuer)) {
            // The client library takes a document of any place if its address is of an unusual form.
            return Err(
                "its authorization failed: the metadata of its authorization server is not at its issuer".to_owned(),
            );
        }
        oauth.check_issuer(issuer)?;
        Ok((manager, resolved.metadata))
    }

    /// Returns a manager without tokens, and its client.
    async fn manager(&self, web: &Web) -> Result<(AuthorizationManager, Arc<PolicedHttp>), String> {
        let http = Arc::new(PolicedHttp::of(&self.policy, web).map_err(|error| error.to_string())?);
        let manager = AuthorizationManager::new_with_oauth_http_client(web.url.as_str(), http.clone()).await;
        Ok((manager.map_err(words)?, http))
    }

    fn tokens(&self, server: &str, web: &Web) -> Tokens {
        Tokens::new(self.store.clone(), key(server, web), &self.refreshing)
    }
}

/// Exchanges the code in the browser's last address.
async fn finish(session: &AuthorizationSession, url: &str, page: &Url, oauth: &McpOAuth) -> Result<(), Callback> {
    check_callback(url, page, &oauth.redirect_uri)?;
    let exchanged = async { session.handle_callback_url(url).await.map(drop).map_err(words) };
    within_phase(exchanged).await.map_err(Callback::Failed)
}

/// Returns the scopes to ask for: the scopes of the configuration. If the challenge says that the
/// granted scopes do not suffice, the granted scopes and the scopes that it names are added.
async fn further_scopes(
    oauth: &McpOAuth,
    tokens: &Tokens,
    metadata: &AuthorizationMetadata,
    challenge: &str,
    web: &Web,
) -> Result<Vec<String>, String> {
    let mut scopes = oauth.scopes.clone();
    let demanded = WWWAuthenticateParams::parse(challenge, &web.url);
    if !demanded.is_insufficient_scope() {
        return Ok(scopes);
    }
    let stored = tokens.load().await.map_err(words)?;
    let stored = stored.filter(|stored| stored.issuer == metadata.issuer);
    scopes.extend(stored.into_iter().flat_map(|stored| stored.granted_scopes));
    scopes.extend(
        demanded
            .scope
            .iter()
            .flat_map(|scope| scope.split_whitespace().map(str::to_owned)),
    );
    let mut known = HashSet::new();
    scopes.retain(|scope| known.insert(scope.clone()));
    Ok(scopes)
}

/// Returns `true` if an authorization server knows clients by the document at the address that is
/// their id.
fn reads_client_metadata(metadata: &AuthorizationMetadata) -> bool {
    let supported = metadata.additional_fields.get("client_id_metadata_document_supported");
    supported.and_then(Value::as_bool) == Some(true)
}

/// Bounds the requests of a phase that does not ask the user.
async fn within_phase<T>(phase: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = |_| {
        Err(format!(
            "its authorization failed: the requests for it took longer than {PHASE:?}"
        ))
    };
    timeout(PHASE, phase).await.unwrap_or_else(late)
}

/// Returns the key of a server's tokens: another address or another client has others.
fn key(server: &str, web: &Web) -> String {
    let oauth = web.oauth.clone().unwrap_or_default().identity().to_string();
    Digest::of([server.to_lowercase().as_str(), web.url.as_str(), &oauth]).short()
}

fn own_account(oauth: &McpOAuth, web: &Web) -> Result<ClientCredentialsConfig, String> {
    let (Some(id), Some(secret)) = (&oauth.client_id, &oauth.client_secret) else {
        return Err("client credentials need `clientId` and `clientSecret`".to_owned());
    };
    Ok(ClientCredentialsConfig::ClientSecret {
        client_id: id.clone(),
        client_secret: secret.expose_secret().to_owned(),
        scopes: oauth.scopes.clone(),
        resource: Some(web.url.to_string()),
    })
}

/// Returns the error in words that show no URL beyond its host, and nothing of a response.
#[expect(clippy::needless_pass_by_value, reason = "it stands in `map_err`")]
fn words(error: AuthError) -> String {
    let text = match &error {
        AuthError::DiscoveryRequestFailed { source, .. } => source.to_string(),
        error => error.to_string(),
    };
    format!(
        "its authorization failed: {}",
        loggable(&crate::transport_error::without_paths(&text))
    )
}
