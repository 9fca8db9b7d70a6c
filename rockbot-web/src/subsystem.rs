//! The subsystem of a host that serves its agent over HTTP: [`WebServer`].

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, StatusCode};
use rockbot_core::config::Config;
use rockbot_core::layer::tower::ServiceExt as _;
use rockbot_core::store::{ConversationMemory, MediaStore};
use rockbot_core::subsystem::{Declarations, Idle, PartCost, Parts, Running, Subsystem};
use rockbot_core::turn::TurnRunner;
use rockbot_core::{BoxError, IdSource, Principal};
use rockbot_tools::http_server::{AcceptedNames, Serving, listen, serve};

use crate::door::{Door, Peer};
use crate::endpoint::WebEndpoint;
use crate::error::WebError;
use crate::host_parts::HostParts;
use crate::limits::Limits;
use crate::meters;
use crate::settings::WebServerSettings;
use crate::sign_in::{SignIn, WebUser};

/// A host's agent for people and programs, over HTTP.
///
/// It serves a page for people at `/`, an interface of its own below `/api` (sessions, messages,
/// events of turns, approvals), OpenAI's interfaces below `/v1`, and AG-UI at `/agui`. A message that was accepted is in the
/// journal: it is answered also if the process is killed, and a reader who lost its connection, or
/// a second reader, reads the events from where it likes.
///
/// Each [user](WebUser) is a principal, and sees its own sessions, turns, approvals and media alone.
/// A server without users serves any program of this machine as the principal `local`, and listens
/// nowhere else. Options come from code, then from the section [`WebServer`](crate::settings) of the
/// configuration.
///
/// Bounds: 512 connections, of which a client whose connections are the most gives one up; requests
/// of 8 MiB that arrive within 30 s; 64 answers that a user reads at once, and 120 messages in a
/// minute; a reader that takes no byte for 30 s is dropped. All can be set but the times.
///
/// # Examples
///
/// ```
/// use rockbot_core::subsystem::Subsystem as _;
/// use rockbot_web::{WebServer, WebUser};
///
/// // A host takes it by `.add(…)`.
/// let server = WebServer::new().listen("127.0.0.1:0").user(WebUser::new("ann", "sesame".to_owned()));
/// assert_eq!(server.name(), "web-server");
/// ```
#[derive(Debug)]
#[must_use]
pub struct WebServer {
    address: Option<String>,
    is_mounted: bool,
    sign_in: SignIn,
    agents: Vec<String>,
    names: AcceptedNames,
    endpoint: WebEndpoint,
    /// The settings, once they are read.
    settings: WebServerSettings,
    /// The address, once it is read.
    listen_at: Option<SocketAddr>,
}

impl WebServer {
    /// Creates a server that listens nowhere, unless the configuration names an address.
    pub fn new() -> Self {
        Self {
            address: None,
            is_mounted: false,
            sign_in: SignIn::default(),
            agents: Vec::new(),
            names: AcceptedNames::default(),
            endpoint: WebEndpoint::default(),
            settings: WebServerSettings::unset(),
            listen_at: None,
        }
    }

    /// Listens at this address. Default: the setting `WebServer.Address`. With port 0 the operating
    /// system chooses one; [`WebEndpoint::address`] tells it.
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// Listens nowhere unless an address is set: a program mounts the
    /// [`router`](WebEndpoint::router), and bounds the connections itself. Without users, everyone
    /// who reaches the program's app is the principal `local`.
    pub fn mounted(mut self) -> Self {
        self.is_mounted = true;
        self
    }

    /// Adds a user. Default: the setting `WebServer.Users`.
    pub fn user(mut self, user: WebUser) -> Self {
        self.sign_in.users.push(user);
        self
    }

    /// Takes the name of a user from this header of a reverse proxy at one of these addresses. The
    /// proxy must replace the header that a client sends. Default: the settings
    /// `WebServer.UserHeader` and `WebServer.TrustedProxies`.
    pub fn user_header(mut self, name: HeaderName, proxies: impl IntoIterator<Item = IpAddr>) -> Self {
        self.sign_in.header = Some(name);
        self.sign_in.proxies.extend(proxies);
        self
    }

    /// Lets a user apply and undo its dreams. Default: the setting `WebServer.Operators`.
    pub fn operator(mut self, name: impl Into<Principal>) -> Self {
        self.sign_in.operators.push(name.into());
        self
    }

    /// Lets users ask an agent beside the host's own. Default: the setting `WebServer.Agents`.
    pub fn agent(mut self, name: impl Into<String>) -> Self {
        self.agents.push(name.into());
        self
    }

    /// Accepts this name in the header `Host`, besides the names of this machine; `*` accepts all.
    /// Default: the setting `WebServer.AllowedHosts`.
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.names.allow_hosts([host.into()]);
        self
    }

    /// Accepts calls of pages from this origin, such as `https://app.example.com`, besides the pages
    /// of this machine and of this server. Default: the setting `WebServer.AllowedOrigins`.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.names.allow_origins([origin.into()]);
        self
    }

    /// Takes from the settings the values that code has left open.
    fn apply(&mut self, mut settings: WebServerSettings) {
        self.address = self.address.take().or(settings.address.take());
        if self.sign_in.is_open() {
            self.sign_in = SignIn {
                users: std::mem::take(&mut settings.users),
                header: settings.user_header.take(),
                proxies: std::mem::take(&mut settings.trusted_proxies),
                operators: std::mem::take(&mut self.sign_in.operators),
            };
        }
        let operators = std::mem::take(&mut settings.operators);
        self.sign_in
            .operators
            .extend(operators.into_iter().map(Principal::from));
        self.agents.append(&mut settings.agents);
        self.names.allow_hosts(std::mem::take(&mut settings.allowed_hosts));
        self.names.allow_origins(std::mem::take(&mut settings.allowed_origins));
        self.settings = settings;
    }

    fn check(&mut self) -> Result<(), BoxError> {
        let parsed = self.address.as_deref().map(str::parse::<SocketAddr>).transpose();
        self.listen_at = parsed.map_err(|_| "`WebServer.Address` is an address with a port, such as 127.0.0.1:8950")?;
        let is_open = self.sign_in.is_open();
        match self.listen_at {
            None if !self.is_mounted => {
                Err("nothing says where to serve: set `WebServer.Address`, or call `.listen(…)` or `.mounted()`".into())
            }
            Some(at) if is_open && !at.ip().is_loopback() => Err(
                "the agent would work for everyone who reaches its address: name `WebServer.Users`, or listen at 127.0.0.1"
                    .into(),
            ),
            _ => self.sign_in.problem().map_or(Ok(()), |problem| Err(problem.into())),
        }
    }

    fn door(&mut self, parts: &Parts, serving: &Serving) -> Result<Door, BoxError> {
        let ids = parts.require::<dyn IdSource>()?;
        let settings = &self.settings;
        Ok(Door {
            turns: parts.require::<dyn TurnRunner>()?,
            memory: parts.require::<dyn ConversationMemory>()?,
            media: parts.get::<dyn MediaStore>(),
            parts: HostParts::of(parts),
            clock: parts.clock().clone(),
            name: parts.identity().name().clone(),
            agents: std::mem::take(&mut self.agents),
            names: std::mem::take(&mut self.names),
            sign_in: std::mem::take(&mut self.sign_in),
            limits: Limits::new(settings.messages_per_minute, settings.max_streams),
            max_body: settings.max_body_bytes,
            long_bodies: Door::long_bodies(),
            searches: Door::searches(),
            stop: serving.stop.clone(),
            tasks: serving.tasks.clone(),
            epoch: ids.next_id(),
            ids,
        })
    }
}

impl Default for WebServer {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Subsystem for WebServer {
    fn name(&self) -> &str {
        "web-server"
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        let config = declarations.parts().get::<Config>().unwrap_or_default();
        let settings = WebServerSettings::from_config(&config)?;
        if !settings.is_enabled {
            self.settings = settings;
            declarations.cost(PartCost::off("a web server").with_switch("the section `WebServer`"));
            return Ok(());
        }
        self.apply(settings);
        self.check()?;
        declarations.provide(Arc::new(self.endpoint.clone()));
        let cost = PartCost::on("a web server").with_switch("the section `WebServer`");
        declarations.cost(cost.with_model_calls("those of a turn for each message"));
        Ok(())
    }

    async fn start(mut self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        if !self.settings.is_enabled {
            return Ok(Box::new(Idle));
        }
        meters::describe();
        let serving = Serving::new("web clients");
        let listening = match self.listen_at {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let address = listening.as_ref().map(|(_, address)| *address);
        self.names.add(address.map(|address| address.ip()), "");
        let door = self.door(parts, &serving)?;
        // A host starts once.
        let _ = self.endpoint.door.set(Arc::new(door));
        if let Some((listener, address)) = listening {
            let _ = self.endpoint.address.set(address);
            let mut router = self.endpoint.router();
            if self.settings.has_page {
                router = router.merge(self.endpoint.page_router());
            }
            let router = router.fallback(nothing_here).method_not_allowed_fallback(wrong_method);
            let max = self.settings.max_connections;
            serving
                .tasks
                .spawn(serve(listener, max, serving.stop.clone(), answering(router)));
        }
        Ok(Box::new(serving))
    }
}

/// Returns the function that answers the requests of the server's own connections.
fn answering(
    router: Router,
) -> impl Fn(axum::http::Request<hyper::body::Incoming>, IpAddr) -> Answering + Clone + Send + Sync + 'static {
    move |request, peer| {
        let mut request: Request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(Peer(peer));
        let answer = router.clone().oneshot(request);
        Box::pin(async move { answer.await.unwrap_or_else(|never| match never {}) })
    }
}

/// An answer that is being made.
type Answering = std::pin::Pin<Box<dyn Future<Output = axum::response::Response> + Send>>;

async fn nothing_here() -> WebError {
    WebError::not_found("there is nothing at this address: the agent is at /api, /v1 and /agui")
}

async fn wrong_method() -> WebError {
    WebError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "wrong_method",
        "this address takes other methods: the header `Allow` names them",
    )
}
