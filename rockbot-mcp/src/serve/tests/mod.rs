//! Tests of the server by clients of the protocol library and of this crate, and by requests of
//! no client.

mod calls;
mod conformance;
mod http;
mod request_ids;

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{RoleClient, ServiceExt as _};
use rockbot_core::subsystem::{Declarations, Parts, Running, Subsystem};
use rockbot_core::tool::{
    InMemoryToolRegistry, OutsideTools, Owner, Tool, ToolEntry, ToolInvokeRequest, ToolInvokeResponse, ToolRegistry,
};
use rockbot_core::{AgentIdentity, BoxError, CallContext, SystemClock};
use tokio::sync::watch;

use super::{McpEndpoint, McpToolServer};

/// The tools of a registry without a host's guard, and the contexts of their calls.
#[derive(Debug, Default)]
struct Unguarded {
    registry: InMemoryToolRegistry,
    seen: std::sync::Mutex<Vec<CallContext>>,
}

#[async_trait]
impl OutsideTools for Unguarded {
    fn tools(&self) -> Vec<Arc<ToolEntry>> {
        let mut tools = self.registry.snapshot().entries().to_vec();
        tools.sort_by(|a, b| a.registration().name.cmp(&b.registration().name));
        tools
    }

    fn find(&self, name: &str) -> Option<Arc<ToolEntry>> {
        self.registry.snapshot().find(name).cloned()
    }

    fn watch(&self) -> watch::Receiver<u64> {
        self.registry.watch()
    }

    async fn call(&self, request: ToolInvokeRequest, cx: &CallContext) -> ToolInvokeResponse {
        self.seen.lock().unwrap().push(cx.clone());
        let entry = self.find(request.tool_name.as_str()).unwrap();
        let calling = entry.executor().execute(request.clone(), cx);
        match calling.await {
            Ok(response) => response,
            Err(error) => request.fail(&error),
        }
    }
}

/// A host with nothing but the subsystem.
struct Host {
    tools: Arc<Unguarded>,
    endpoint: McpEndpoint,
    running: Box<dyn Running>,
}

impl Host {
    /// Serves these tools at any free port of this machine, unless the server says otherwise.
    async fn start(server: McpToolServer, tools: Vec<Tool>) -> Self {
        Self::try_start(server, tools).await.unwrap()
    }

    async fn try_start(mut server: McpToolServer, tools: Vec<Tool>) -> Result<Self, BoxError> {
        let outside = Arc::new(Unguarded::default());
        let owner = Owner::new("test");
        for tool in tools {
            outside.registry.register(&owner, tool)?;
        }
        let mut parts = Parts::new(AgentIdentity::new("workshop"), Arc::new(SystemClock), None);
        parts.provide::<dyn OutsideTools>(outside.clone());
        let mut declarations = Declarations::new(parts);
        server.declare(&mut declarations)?;
        let parts = declarations.merge().parts;
        let running = Subsystem::start(Box::new(server), &parts).await?;
        Ok(Self {
            tools: outside,
            endpoint: McpEndpoint::clone(&*parts.require::<McpEndpoint>()?),
            running,
        })
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.endpoint.address().unwrap())
    }

    /// Connects a client of the protocol library, in the form of the protocol that has sessions.
    async fn client(&self) -> RunningService<RoleClient, ()> {
        ().serve(StreamableHttpClientTransport::from_uri(self.url()))
            .await
            .unwrap()
    }
}

/// Returns a server at any free port of this machine, of all tools.
fn anywhere() -> McpToolServer {
    McpToolServer::new().listen("127.0.0.1:0".parse().unwrap()).tools(["*"])
}
