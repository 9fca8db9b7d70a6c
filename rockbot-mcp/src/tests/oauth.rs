//! Servers over HTTP that demand an authorization, with an authorization server of this process.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use rockbot_core::files::DataFolder;
use rockbot_core::tool::ToolErrorCode;
use rockbot_core::{BoxError, Secret};
use serde_json::{Value, json};
use sha2::Digest as _;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::Host;
use crate::oauth::CredentialFolder;
use crate::{
    Authorization, AuthorizationAnswer, AuthorizationHandler, CredentialStore, InMemoryCredentials, McpOAuth,
    McpServer, McpServerState, McpTools,
};

/// An MCP server at `/mcp`, and its authorization server at the same address. Clones share their
/// state.
#[derive(Debug, Clone, Default)]
struct World {
    base: String,
    /// Metadata that differs from the honest one.
    changed: Value,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    issued: u32,
    valid: HashSet<String>,
    /// The challenge of the code that the user got.
    challenge: String,
    /// Number of registered clients.
    registered: u32,
    /// `true` if no metadata is there any more.
    is_bare: bool,
    /// The scope that calls need.
    demanded: Option<&'static str>,
    /// The scopes of the code that the user got.
    scopes: String,
    /// The tokens with the demanded scope.
    wide: HashSet<String>,
    /// An error with which refreshes are refused.
    refusal: Option<&'static str>,
    /// The forms that came to the token endpoint.
    forms: Vec<HashMap<String, String>>,
}

impl World {
    async fn start(changed: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let world = Self {
            base: format!("http://{}", listener.local_addr().unwrap()),
            changed,
            state: Arc::default(),
        };
        let serving = world.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let world = serving.clone();
                tokio::spawn(async move { world.answer(stream).await });
            }
        });
        world
    }

    fn server(&self) -> McpServer {
        McpServer::http("docs", &format!("{}/mcp", self.base)).unwrap()
    }

    fn forms(&self) -> Vec<HashMap<String, String>> {
        self.state.lock().unwrap().forms.clone()
    }

    /// Answers the one request of a connection.
    async fn answer(&self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        let mut length = 0;
        let mut token = String::new();
        let mut first = String::new();
        stream.read_line(&mut first).await.unwrap();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap(),
                "authorization" => value.trim().trim_start_matches("Bearer ").clone_into(&mut token),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let (status, body) = self.respond(&path, &token, &String::from_utf8(body).unwrap());
        let challenge = match status {
            "401 Unauthorized" => format!(
                "www-authenticate: Bearer resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"\r\n",
                self.base
            ),
            "403 Forbidden" => {
                let scope = self.state.lock().unwrap().demanded.unwrap_or_default();
                format!("www-authenticate: Bearer error=\"insufficient_scope\", scope=\"{scope}\"\r\n")
            }
            _ => String::new(),
        };
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\n{challenge}content-type: application/json\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    }

    fn respond(&self, path: &str, token: &str, body: &str) -> (&'static str, String) {
        let base = &self.base;
        let metadata = |mut metadata: Value| {
            for (name, value) in self.changed.as_object().into_iter().flatten() {
                metadata[name] = value.clone();
            }
            ("200 OK", metadata.to_string())
        };
        let is_bare = self.state.lock().unwrap().is_bare;
        match path {
            _ if is_bare && path.starts_with("/.well-known/") => ("404 Not Found", String::new()),
            "/mcp" if self.needs_scope(token, body) => ("403 Forbidden", String::new()),
            "/mcp" if self.state.lock().unwrap().valid.contains(token) => rpc(body),
            "/mcp" => ("401 Unauthorized", String::new()),
            "/.well-known/oauth-protected-resource/mcp" => {
                metadata(json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}))
            }
            "/.well-known/oauth-authorization-server" | "/any/.well-known/place" => metadata(json!({
                "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": true,
            })),
            "/register" => {
                self.state.lock().unwrap().registered += 1;
                (
                    "201 Created",
                    json!({"client_id": "registered", "redirect_uris": []}).to_string(),
                )
            }
            "/token" => self.grant(body),
            _ => ("404 Not Found", String::new()),
        }
    }

    /// Returns `true` if the request is a call, and the token has not the scope that calls need.
    fn needs_scope(&self, token: &str, body: &str) -> bool {
        let state = self.state.lock().unwrap();
        let is_known = state.valid.contains(token) && !state.wide.contains(token);
        is_known && state.demanded.is_some() && body.contains("tools/call")
    }

    /// Grants a token, if the form is as it must be.
    fn grant(&self, body: &str) -> (&'static str, String) {
        let form: HashMap<String, String> = Url::parse(&format!("http://x/?{body}"))
            .unwrap()
            .query_pairs()
            .into_owned()
            .collect();
        let mut state = self.state.lock().unwrap();
        state.forms.push(form.clone());
        if let Some(error) = state.refusal.filter(|_| form["grant_type"] == "refresh_token") {
            return ("401 Unauthorized", json!({"error": error}).to_string());
        }
        let verifier = form.get("code_verifier").map(String::as_str).unwrap_or_default();
        let challenge = URL_SAFE_NO_PAD.encode(sha2::Sha256::digest(verifier));
        let is_right = match form["grant_type"].as_str() {
            "authorization_code" => form["code"] == "secret-code" && challenge == state.challenge,
            "refresh_token" => form["refresh_token"] == format!("secret-refresh-{}", state.issued),
            _ => form["client_secret"] == "secret-key",
        };
        if !is_right || form["resource"] != format!("{}/mcp", self.base) {
            return ("400 Bad Request", json!({"error": "invalid_grant"}).to_string());
        }
        state.issued += 1;
        let token = format!("secret-token-{}", state.issued);
        state.valid.insert(token.clone());
        if state
            .demanded
            .is_some_and(|scope| state.scopes.split(' ').any(|granted| granted == scope))
        {
            state.wide.insert(token.clone());
        }
        let refresh = format!("secret-refresh-{}", state.issued);
        let granted =
            json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh});
        ("200 OK", granted.to_string())
    }
}

/// Answers a request of the protocol, for a client that is authorized.
fn rpc(body: &str) -> (&'static str, String) {
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "docs", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "done"}]}),
        _ if message["id"].is_null() => return ("202 Accepted", String::new()),
        _ => {
            let error = json!({"code": -32601, "message": "unknown"});
            return (
                "200 OK",
                json!({"jsonrpc": "2.0", "id": message["id"], "error": error}).to_string(),
            );
        }
    };
    (
        "200 OK",
        json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string(),
    )
}

/// A user with a browser. Clones share what they were asked.
#[derive(Debug, Clone)]
struct User {
    world: World,
    agrees: bool,
    /// Number of pages on which the user agrees.
    patience: usize,
    /// Address at the end, in place of one with a code; with `{redirect}` and `{state}`.
    ends_at: Option<&'static str>,
    asked: Arc<Mutex<Vec<Authorization>>>,
}

impl User {
    fn of(world: &World, agrees: bool) -> Self {
        Self {
            world: world.clone(),
            agrees,
            patience: usize::MAX,
            ends_at: None,
            asked: Arc::default(),
        }
    }

    fn ending_at(world: &World, address: &'static str) -> Self {
        Self {
            ends_at: Some(address),
            ..Self::of(world, true)
        }
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

#[async_trait]
impl AuthorizationHandler for User {
    async fn authorize(&self, authorization: Authorization) -> AuthorizationAnswer {
        let asked = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(authorization.clone());
            asked.len()
        };
        if !self.agrees || asked > self.patience {
            return AuthorizationAnswer::Decline;
        }
        let url = Url::parse(&authorization.url).unwrap();
        let query: HashMap<String, String> = url.query_pairs().into_owned().collect();
        let base = &self.world.base;
        assert_eq!(url.path(), "/authorize");
        assert_eq!(
            (
                &*query["response_type"],
                &*query["code_challenge_method"],
                &*query["resource"]
            ),
            ("code", "S256", &*format!("{base}/mcp"))
        );
        {
            let mut state = self.world.state.lock().unwrap();
            query["code_challenge"].clone_into(&mut state.challenge);
            state.scopes = query.get("scope").cloned().unwrap_or_default();
        }
        let redirect = &authorization.redirect_uri;
        let state = &query["state"];
        if let Some(address) = self.ends_at {
            return AuthorizationAnswer::Redirected(address.replace("{redirect}", redirect).replace("{state}", state));
        }
        AuthorizationAnswer::Redirected(format!("{redirect}?code=secret-code&state={state}&iss={base}"))
    }
}

fn state_of(host: &Host) -> McpServerState {
    host.servers.list()[0].state.clone()
}

/// The reason of a server whose authorization was declined earlier.
const AGAIN: &str = "its authorization was declined; restart, or change its entry, to be asked again";

async fn wait_for(host: &Host, state: McpServerState) {
    let mut changes = host.servers.watch().unwrap();
    while state_of(host) != state {
        changes.changed().await.unwrap();
    }
}

#[tokio::test]
async fn a_user_authorizes_once_and_tokens_are_kept_for_the_user_of_the_process_alone() {
    let world = World::start(Value::Null).await;
    let user = User::of(&world, true);
    let data = tempfile::tempdir().unwrap();
    let folder = Arc::new(DataFolder::open(data.path()).unwrap());
    let tools = |user: User| {
        let kept = CredentialFolder(folder.clone());
        McpTools::default()
            .server(world.server())
            .authorization(user)
            .credentials(kept)
    };
    let host = Host::start(tools(user.clone())).await;
    assert_eq!((state_of(&host), user.asked()), (McpServerState::Connected, 1));
    let asked = user.asked.lock().unwrap()[0].clone();
    assert_eq!(
        (&*asked.server, &*asked.redirect_uri),
        ("docs", "http://127.0.0.1:8976/callback")
    );
    host.call("docs__echo", json!({})).await.unwrap();
    let oauth = McpOAuth::default()
        .client("me")
        .secret("secret-key", "https://login.example");
    let redirected = AuthorizationAnswer::Redirected("http://127.0.0.1/?code=secret-code".to_owned());
    let kept = InMemoryCredentials::default();
    kept.save("docs", Secret::from("secret-token")).await.unwrap();
    let shown = format!("{:?} {oauth:?} {redirected:?} {kept:?}", host.servers);
    assert!(!shown.contains("secret-"), "{shown}");
    host.running.stop().await;

    let file = std::fs::read_dir(data.path().join("credentials"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert!(std::fs::read_to_string(file.path()).unwrap().contains("secret-token-1"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    let other = User::of(&world, false);
    let host = Host::start(tools(other.clone())).await;
    assert_eq!((state_of(&host), other.asked()), (McpServerState::Connected, 0));
    host.running.stop().await;
}

#[tokio::test]
async fn a_rejected_token_is_refreshed_and_the_call_goes_through() {
    let world = World::start(Value::Null).await;
    let user = User::of(&world, true);
    let host = Host::start(McpTools::default().server(world.server()).authorization(user.clone())).await;
    world.state.lock().unwrap().valid.clear();
    let answer = host.call("docs__echo", json!({})).await.unwrap();
    assert_eq!(answer.content.text(), "done");
    let grants: Vec<_> = world.forms().iter().map(|form| form["grant_type"].clone()).collect();
    assert_eq!(grants, ["authorization_code", "refresh_token"]);
    assert_eq!(user.asked(), 1);
    host.running.stop().await;
}

#[tokio::test]
async fn a_user_who_declines_is_not_asked_at_each_attempt() {
    let world = World::start(Value::Null).await;
    let user = User::of(&world, false);
    let host = Host::start(McpTools::default().server(world.server()).authorization(user.clone())).await;
    let declined = "its authorization was declined".to_owned();
    assert_eq!(state_of(&host), McpServerState::Failed(declined));
    wait_for(&host, McpServerState::Failed(AGAIN.to_owned())).await;
    assert_eq!((user.asked(), world.forms().len()), (1, 0));
    host.running.stop().await;
}

#[tokio::test]
async fn hostile_metadata_leads_neither_this_process_nor_the_user_astray() {
    // Something of the operator's own network, as a server could name it.
    let internal = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", internal.local_addr().unwrap());
    for changed in [
        json!({"authorization_servers": [address]}),
        json!({"token_endpoint": format!("{address}/token")}),
        json!({"registration_endpoint": format!("{address}/register")}),
        json!({"issuer": address}),
        json!({"issuer": "https://login.example", "authorization_servers": ["/any/.well-known/place"]}),
        json!({"authorization_endpoint": "javascript:alert(1)"}),
        json!({"authorization_endpoint": "file:///etc/passwd"}),
    ] {
        let world = World::start(changed.clone()).await;
        let user = User::of(&world, true);
        let host = Host::start(McpTools::default().server(world.server()).authorization(user.clone())).await;
        let McpServerState::Failed(reason) = state_of(&host) else {
            panic!("{changed}: {:?}", host.servers);
        };
        assert!(!reason.contains("secret"), "{reason}");
        let shown = user
            .asked
            .lock()
            .unwrap()
            .iter()
            .all(|asked| asked.url.starts_with(&world.base));
        assert!(shown, "{changed}");
        host.running.stop().await;
    }
    internal.set_nonblocking(true).unwrap();
    let dialled = internal.accept().map(|_| ());
    assert_eq!(dialled.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn a_program_authorizes_itself_with_client_credentials() {
    let world = World::start(Value::Null).await;
    let oauth = McpOAuth::default()
        .client("robot")
        .secret("secret-key", &*world.base)
        .scopes(["files:read"])
        .client_credentials();
    let host = Host::start(McpTools::default().server(world.server().oauth(oauth))).await;
    assert_eq!(state_of(&host), McpServerState::Connected);
    host.call("docs__echo", json!({})).await.unwrap();
    let form = world.forms().remove(0);
    assert_eq!(
        (&*form["grant_type"], &*form["client_id"], &*form["scope"]),
        ("client_credentials", "robot", "files:read")
    );
    host.running.stop().await;
}

#[tokio::test]
async fn without_a_user_the_operator_is_told_what_to_do() {
    let world = World::start(Value::Null).await;
    let host = Host::start(McpTools::default().server(world.server().oauth(McpOAuth::default()))).await;
    let reason = "the server asks for an authorization, and the host asks no user: set its header `Authorization`, or \
                  give the host an `AuthorizationHandler`";
    assert_eq!(state_of(&host), McpServerState::Failed(reason.to_owned()));
    host.running.stop().await;
}

#[tokio::test]
async fn tokens_and_secrets_stay_with_the_authorization_server_that_has_granted_them() {
    let world = World::start(Value::Null).await;
    let kept = Arc::new(InMemoryCredentials::default());
    let tools = |user: &User| {
        McpTools::default()
            .server(world.server())
            .authorization(user.clone())
            .credentials(Shared(kept.clone()))
    };
    let host = Host::start(tools(&User::of(&world, true))).await;
    assert_eq!(state_of(&host), McpServerState::Connected);
    host.running.stop().await;
    {
        let mut state = world.state.lock().unwrap();
        state.valid.clear();
        state.is_bare = true;
        state.forms.clear();
    }
    let user = User::of(&world, false);
    let host = Host::start(tools(&user)).await;
    let declined = "its authorization was declined".to_owned();
    assert_eq!(state_of(&host), McpServerState::Failed(declined));
    assert_eq!(
        (user.asked(), world.forms()),
        (1, Vec::new()),
        "no refresh token reached the server"
    );
    host.running.stop().await;
}

/// A store that outlives a host.
#[derive(Debug)]
struct Shared(Arc<InMemoryCredentials>);

#[async_trait]
impl CredentialStore for Shared {
    async fn load(&self, key: &str) -> Result<Option<Secret>, BoxError> {
        self.0.load(key).await
    }

    async fn save(&self, key: &str, credentials: Secret) -> Result<(), BoxError> {
        self.0.save(key, credentials).await
    }

    async fn clear(&self, key: &str) -> Result<(), BoxError> {
        self.0.clear(key).await
    }
}

#[tokio::test]
async fn an_authorization_server_that_is_not_the_configured_issuer_gets_nothing() {
    let world = World::start(Value::Null).await;
    let secret = McpOAuth::default()
        .client("robot")
        .secret("secret-key", "https://login.example");
    let public = McpOAuth::default().issuer("https://login.example");
    for oauth in [secret.clone(), secret.client_credentials(), public] {
        let user = User::of(&world, true);
        let tools = McpTools::default().server(world.server().oauth(oauth));
        let host = Host::start(tools.authorization(user.clone())).await;
        let reason = "its authorization server is another one than the issuer of its configuration: correct the issuer if \
                      the server has changed it, and else remove the server";
        assert_eq!(state_of(&host), McpServerState::Failed(reason.to_owned()));
        let registered = world.state.lock().unwrap().registered;
        assert_eq!((user.asked(), registered, world.forms().len()), (0, 0, 0));
        host.running.stop().await;
    }
}

#[tokio::test]
async fn a_refusal_on_the_page_counts_as_one() {
    let world = World::start(Value::Null).await;
    let user = User::ending_at(&world, "{redirect}?error=access_denied&state={state}");
    let host = Host::start(McpTools::default().server(world.server()).authorization(user.clone())).await;
    let declined = "its authorization was declined".to_owned();
    assert_eq!(state_of(&host), McpServerState::Failed(declined));
    wait_for(&host, McpServerState::Failed(AGAIN.to_owned())).await;
    assert_eq!((user.asked(), world.forms().len()), (1, 0));
    host.running.stop().await;
}

#[tokio::test]
async fn a_page_that_ends_wrongly_is_shown_three_times_and_the_client_registered_once() {
    let check = async |address: &'static str, problem: &str| {
        let world = World::start(Value::Null).await;
        let user = User::ending_at(&world, address);
        let host = Host::start(McpTools::default().server(world.server()).authorization(user.clone())).await;
        let McpServerState::Failed(reason) = state_of(&host) else {
            panic!("{address}: {:?}", host.servers);
        };
        assert!(reason.contains(problem), "{reason}");
        wait_for(&host, McpServerState::Failed(AGAIN.to_owned())).await;
        let registered = world.state.lock().unwrap().registered;
        assert_eq!((user.asked(), registered, world.forms().len()), (3, 1, 0), "{address}");
        host.running.stop().await;
    };
    tokio::join!(
        check(
            "https://other.example/?code=secret-code&state={state}",
            "does not begin with the redirect URI"
        ),
        check(
            "{redirect}?error=access_denied&state=other",
            "belongs to another attempt"
        ),
        check(
            "{redirect}?error=server_error&state={state}",
            "the page answered `server_error`"
        ),
        check("nonsense", "is no URL"),
    );
}

#[tokio::test]
async fn a_client_that_is_no_longer_known_is_authorized_anew() {
    for refusal in ["invalid_client", "unauthorized_client"] {
        let world = World::start(Value::Null).await;
        let user = User::of(&world, true);
        let kept = Arc::new(InMemoryCredentials::default());
        let tools = || {
            McpTools::default()
                .server(world.server())
                .authorization(user.clone())
                .credentials(Shared(kept.clone()))
        };
        let host = Host::start(tools()).await;
        host.running.stop().await;
        {
            let mut state = world.state.lock().unwrap();
            state.valid.clear();
            state.refusal = Some(refusal);
        }
        let host = Host::start(tools()).await;
        assert_eq!((state_of(&host), user.asked()), (McpServerState::Connected, 2));
        let grants: Vec<_> = world.forms().iter().map(|form| form["grant_type"].clone()).collect();
        assert_eq!(grants, ["authorization_code", "refresh_token", "authorization_code"]);
        host.running.stop().await;
    }
}

/// A server that demands a further scope for a call, whose tool may change something.
async fn demanding(user: impl Fn(&World) -> User) -> (World, User, Host) {
    let world = World::start(Value::Null).await;
    world.state.lock().unwrap().demanded = Some("write");
    let user = user(&world);
    let server = world.server().oauth(McpOAuth::default().scopes(["read"]));
    let host = Host::start(McpTools::default().server(server).authorization(user.clone())).await;
    assert_eq!((state_of(&host), user.asked()), (McpServerState::Connected, 1));
    (world, user, host)
}

#[tokio::test]
async fn a_call_that_needs_a_further_scope_asks_the_user_and_runs_then() {
    let (world, user, host) = demanding(|world| User::of(world, true)).await;
    let answer = host.call("docs__echo", json!({})).await.unwrap();
    assert_eq!((answer.content.into_words().as_str(), user.asked()), ("done", 2));
    assert_eq!(world.state.lock().unwrap().scopes, "read write");
    host.call("docs__echo", json!({})).await.unwrap();
    assert_eq!(user.asked(), 2);
    host.running.stop().await;
}

#[tokio::test]
async fn a_further_scope_that_the_user_refuses_leaves_the_server_connected() {
    let (_, user, host) = demanding(|world| User {
        patience: 1,
        ..User::of(world, true)
    })
    .await;
    for _ in 0..2 {
        let refused = host.call("docs__echo", json!({})).await.unwrap_err();
        let denied =
            "the MCP server `docs` demands an authorization for this call that was not granted; nothing was called";
        assert_eq!((refused.code(), refused.message()), (ToolErrorCode::Denied, denied));
        wait_for(&host, McpServerState::Connected).await;
    }
    assert_eq!(user.asked(), 2);
    host.running.stop().await;
}

#[tokio::test]
async fn a_server_that_is_never_satisfied_asks_the_user_a_few_times() {
    let (world, user, host) = demanding(|world| User::of(world, true)).await;
    for _ in 0..5 {
        world.state.lock().unwrap().wide.clear();
        let _ = host.call("docs__echo", json!({})).await;
    }
    assert_eq!(user.asked(), 4);
    host.running.stop().await;
}

/// A hostile server could have the user authorize the agent at an honest authorization server,
/// and get its code (mix-up).
#[tokio::test]
async fn a_code_of_another_issuer_is_not_exchanged() {
    for address in [
        "{redirect}?code=secret-code&state={state}&iss=https://other.example",
        "{redirect}?code=secret-code&state={state}",
        "{redirect}?code=secret-code&state={state}&iss=",
        "{redirect}?code=secret-code&state={state}&state=other&iss=https://other.example",
    ] {
        let world = World::start(Value::Null).await;
        let user = User::ending_at(&world, address);
        let host = Host::start(McpTools::default().server(world.server()).authorization(user.clone())).await;
        let McpServerState::Failed(reason) = state_of(&host) else {
            panic!("{address}: {:?}", host.servers);
        };
        assert!(!reason.contains("secret"), "{reason}");
        assert_eq!(world.forms(), Vec::new(), "{address}: no code leaves this process");
        host.running.stop().await;
    }
}

#[tokio::test]
async fn an_authorization_server_without_proof_keys_is_not_used() {
    let world = World::start(json!({"code_challenge_methods_supported": ["plain"]})).await;
    let user = User::of(&world, true);
    let host = Host::start(McpTools::default().server(world.server()).authorization(user.clone())).await;
    let McpServerState::Failed(reason) = state_of(&host) else {
        panic!("{:?}", host.servers);
    };
    assert!(reason.starts_with("its authorization failed"), "{reason}");
    assert_eq!((user.asked(), world.forms().len()), (0, 0));
    host.running.stop().await;
}

/// The authorization server takes each refresh token once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hosts_that_refresh_at_once_keep_the_authorization() {
    for _ in 0..5 {
        let world = World::start(Value::Null).await;
        let kept = Arc::new(InMemoryCredentials::default());
        let user = User::of(&world, true);
        let tools = || {
            McpTools::default()
                .server(world.server())
                .authorization(user.clone())
                .credentials(Shared(kept.clone()))
        };
        let hosts = [Host::start(tools()).await, Host::start(tools()).await];
        for host in &hosts {
            assert_eq!(state_of(host), McpServerState::Connected);
        }
        world.state.lock().unwrap().valid.clear();
        let calls = hosts.iter().map(|host| host.call("docs__echo", json!({})));
        let mut calls: Vec<_> = calls.map(Box::pin).collect();
        let second = calls.pop().unwrap();
        let first = calls.pop().unwrap();
        let answers = tokio::join!(first, second);
        for answer in [answers.0, answers.1] {
            assert_eq!(answer.unwrap().content.text(), "done");
        }
        assert_eq!(user.asked(), 1, "the user is not asked again: {:?}", world.forms());
        for host in &hosts {
            host.running.stop().await;
        }
    }
}
