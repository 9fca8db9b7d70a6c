//! The subsystem of a host that serves its tools: [`McpToolServer`].

use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use rmcp::ServiceExt as _;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;
use rockbot_core::config::Config;
use rockbot_core::context::{CancellationToken, Trust};
use rockbot_core::store::MediaStore;
use rockbot_core::subsystem::{Declarations, Idle, PartCost, Parts, Running, Subsystem};
use rockbot_core::tool::{OutsideTools, ToolRegistration};
use rockbot_core::{BoxError, IdSource, Principal, RandomIds, Secret};
use rockbot_tools::http_server::{Serving, listen};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::call::Caller;
use super::endpoint::McpEndpoint;
use super::handler::{Handler, MAX_CALLS, Served};
use super::http::{Admission, HttpServer};
use super::request_ids::UniqueIds;
use super::selection::Selection;
use super::settings::McpServerSettings;

/// Default maximum length of the text of a result, in bytes.
const MAX_TEXT: usize = 256 * 1024;

/// Maximum length of a message on standard input, in bytes.
const MAX_LINE: usize = 4 << 20;

/// The tools of a host as a server of the Model Context Protocol, for other agents and editors.
///
/// It serves only the tools that are [named](Self::tools) or taken by a [filter](Self::matching).
/// A call goes the way of all calls of the host: layers, validation, limits, metrics. A call that
/// needs a person's approval is refused, since there is none to ask. Calls are made on behalf of
/// a [principal](Self::principal) of their own, as [untrusted](Self::trust) ones, so they change
/// nothing that the user trusts. Effects become annotations; changes of the tools are announced;
/// progress and cancellation are passed on. The text of a result is cut at 256 KiB.
///
/// Over HTTP it listens at `http://ADDRESS/mcp`, and accepts requests that name this machine in
/// the headers `Host` and `Origin`. An address that others reach needs a [token](Self::token).
///
/// Options come from code, then from the section [`McpServer`](super::settings) of the
/// configuration. A host that only serves tools needs no model.
///
/// # Examples
///
/// ```
/// use rockbot_core::subsystem::Subsystem as _;
/// use rockbot_mcp::McpToolServer;
///
/// // A program that an MCP client starts: `.add(…)` it to a host, and wait for `McpEndpoint::closed`.
/// let server = McpToolServer::new().stdio().tools(["calculate", "notes_*"]);
/// assert_eq!(server.name(), "mcp-server");
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct McpToolServer {
    is_stdio: bool,
    address: Option<SocketAddr>,
    selection: Selection,
    admission: Admission,
    principal: Option<Principal>,
    trust: Option<Trust>,
    max_text: Option<usize>,
    instructions: Option<String>,
    endpoint: McpEndpoint,
    /// `true` if the settings turn the server off.
    is_off: bool,
}

impl McpToolServer {
    /// Creates a server that serves no tool, nowhere but where the configuration says.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves the client that started this program, over standard input and output. Nothing else may
    /// print there. Default: the setting `McpServer.Stdio`, else `false`.
    pub fn stdio(mut self) -> Self {
        self.is_stdio = true;
        self
    }

    /// Serves clients over HTTP at this address. Default: the setting `McpServer.Address`. With port
    /// 0 the operating system chooses one; [`McpEndpoint::address`] tells it.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// Serves the tools of these names; each `*` in a name stands for any text. Default: the setting
    /// `McpServer.Tools`.
    pub fn tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.selection.add(names);
        self
    }

    /// Serves the tools that the filter takes, besides the named tools. The filter is asked anew when
    /// the tools change.
    pub fn matching(mut self, filter: impl Fn(&ToolRegistration) -> bool + Send + Sync + 'static) -> Self {
        self.selection.set_filter(filter);
        self
    }

    /// Sets the bearer token that clients over HTTP must send. Default: the setting `McpServer.Token`.
    pub fn token(mut self, token: impl Into<Secret>) -> Self {
        self.admission.token = Some(token.into());
        self
    }

    /// Accepts this name in the header `Host`, besides the names of this machine; `*` accepts all.
    /// Default: the setting `McpServer.AllowedHosts`.
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.admission.hosts.push(host.into());
        self
    }

    /// Accepts calls of pages from this origin, besides the origins of this machine, such as
    /// `https://app.example.com:443`. Default: the setting `McpServer.AllowedOrigins`.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.admission.origins.push(origin.into());
        self
    }

    /// Sets the principal on whose behalf calls are made: stores keep its data apart from others'
    /// data. Default: the setting `McpServer.Principal`, else `mcp`.
    pub fn principal(mut self, principal: Principal) -> Self {
        self.principal = Some(principal);
        self
    }

    /// Sets the trust in callers, at most the trust in a user. Default [`Trust::Untrusted`]: it is
    /// unknown what their models have read.
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = Some(trust.min(Trust::User));
        self
    }

    /// Sets the maximum length of the text of a result, in bytes. Default 256 KiB.
    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.max_text = Some(bytes);
        self
    }

    /// Sets the text about the tools that clients' models are shown. Default: no text.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Takes the values that code has left open from the settings.
    fn apply(&mut self, settings: McpServerSettings) {
        self.address = self.address.or(settings.address);
        self.is_stdio |= settings.is_stdio;
        if self.selection.is_empty() {
            self.selection.add(settings.tools);
        }
        let admission = &mut self.admission;
        admission.token = admission.token.take().or(settings.token);
        admission.hosts.extend(settings.allowed_hosts);
        admission.origins.extend(settings.allowed_origins);
        let principal = settings.principal.map(Principal::from);
        self.principal = self.principal.take().or(principal);
    }

    fn check(&self) -> Result<(), BoxError> {
        if !self.is_stdio && self.address.is_none() {
            return Err(
                "nothing says where to serve: set `McpServer.Address` or `McpServer.Stdio`, or call `.listen(…)` or \
                 `.stdio()`"
                    .into(),
            );
        }
        if self.selection.is_empty() {
            return Err("no tool is served: set `McpServer.Tools`, or call `.tools([…])`; `*` is all of them".into());
        }
        match self.address {
            Some(address) => Ok(self.admission.check(address)?),
            None => Ok(()),
        }
    }

    fn served(&mut self, parts: &Parts, stop: CancellationToken, tasks: TaskTracker) -> Result<Served, BoxError> {
        Ok(Served {
            tools: parts.require::<dyn OutsideTools>()?,
            media: parts.get::<dyn MediaStore>(),
            ids: parts.get::<dyn IdSource>().unwrap_or_else(|| Arc::new(RandomIds)),
            selection: self.selection.clone(),
            caller: Caller {
                principal: self.principal.take().unwrap_or_else(|| Principal::from("mcp")),
                trust: self.trust.unwrap_or(Trust::Untrusted),
            },
            max_text: self.max_text.unwrap_or(MAX_TEXT),
            permits: Semaphore::new(MAX_CALLS),
            name: parts.identity().name().to_string(),
            instructions: self.instructions.take(),
            stop,
            tasks,
        })
    }
}

#[async_trait]
impl Subsystem for McpToolServer {
    fn name(&self) -> &str {
        "mcp-server"
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        let config = declarations.parts().get::<Config>().unwrap_or_default();
        let settings = McpServerSettings::from_config(&config)?;
        self.is_off = !settings.is_enabled;
        if self.is_off {
            declarations.cost(PartCost::off("an MCP server").with_switch("the section `McpServer`"));
            return Ok(());
        }
        self.apply(settings);
        self.check()?;
        declarations.serve_tools();
        declarations.provide(Arc::new(self.endpoint.clone()));
        declarations.cost(PartCost::on("an MCP server").with_switch("the section `McpServer`"));
        Ok(())
    }

    async fn start(mut self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        if self.is_off {
            return Ok(Box::new(Idle));
        }
        let serving = Serving::new("MCP clients");
        let stop = serving.stop.clone();
        let tasks = serving.tasks.clone();
        let handle = Handle {
            serving,
            endpoint: self.endpoint.clone(),
        };
        let handler = Handler::new(self.served(parts, stop.clone(), tasks.clone())?);
        if let Some(address) = self.address {
            let (listener, address) = listen(address).await?;
            // A host starts once.
            let _ = self.endpoint.address.set(address);
            let server = HttpServer::new(handler.clone(), &self.admission, address, stop.clone());
            tasks.spawn(server.serve(listener));
        }
        if self.is_stdio {
            tasks.spawn(serve_stdio(handler, stop, self.endpoint.closed.clone()));
        }
        Ok(Box::new(handle))
    }
}

/// Serves standard input until the client closes it.
async fn serve_stdio(handler: Handler, stop: CancellationToken, closed: CancellationToken) {
    let (input, output) = stdio_pipes();
    let transport = UniqueIds::around(AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_LINE));
    match handler.serve_with_ct(transport, stop).await {
        // How it ended makes no difference: the client is gone.
        Ok(running) => drop(running.waiting().await),
        Err(error) => tracing::warn!(%error, "the client at standard input did not speak MCP"),
    }
    closed.cancel();
}

/// The handle of the host.
#[derive(Debug)]
struct Handle {
    serving: Serving,
    endpoint: McpEndpoint,
}

#[async_trait]
impl Running for Handle {
    async fn stop(&self) {
        self.serving.stop().await;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // A host that is dropped without a stop: no program waits for the client any more.
        self.endpoint.closed.cancel();
    }
}
