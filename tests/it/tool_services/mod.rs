//! Tools of tool services: from a descriptor to the answer (`calls`), whatever goes wrong in
//! between (`limits`), and tools that come and go with their descriptors (`descriptors`).

mod calls;
mod descriptors;
mod limits;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rockbot::tool_services::{
    DescriptorFolder, ReplyParts, RunningToolService, ToolService, ToolServiceServer, ToolServices,
};
use rockbot_core::messaging::{
    Delivery, Disposition, MessageEnvelope, MessagePublisher, MessageSubscriberExt, Subscription,
};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::ToolErrorCode;
use rockbot_core::{BoxError, CallContext};
use rockbot_host::bus::InProcessBus;
use rockbot_host::{AgentHost, AgentHostBuilder};
use serde_json::{Value, json};

use crate::support::{host_of, request};

const SECOND: Duration = Duration::from_secs(1);

const SERVICE: &str = r#"{
    "id": "joke-service",
    "request-queue": "non-persistent://tg/request/joke",
    "response-queue": "non-persistent://tg/response/joke",
    "config-params": [{"name": "style", "required": false}]
}"#;

/// The descriptor of a tool of the joke service.
fn tool_of(name: &str, effect: &str) -> String {
    json!({
        "type": "tool-service",
        "name": name,
        "description": "Tell a joke on a given topic",
        "service": "joke-service",
        "style": "pun",
        "effect": effect,
        "arguments": [{"name": "topic", "type": "string", "description": "The topic for the joke"}],
    })
    .to_string()
}

/// A folder with the service and a tool.
fn jokes(effect: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let descriptors = DescriptorFolder::new(folder.path());
    descriptors.put("tool-service/joke-service", SERVICE).unwrap();
    descriptors
        .put("tool/tell-joke", &tool_of("tell-joke", effect))
        .unwrap();
    assert_eq!(descriptors.problems(), []);
    folder
}

fn agent(model: &ScriptedModel, bus: &InProcessBus, folder: &Path) -> AgentHostBuilder {
    let tools = ToolServices::new().folder(folder).poll_interval(SECOND);
    host_of(model).shared_bus(Arc::new(bus.clone())).add(tools)
}

async fn started(host: AgentHostBuilder) -> AgentHost {
    let host = host.build().unwrap();
    host.start().await.unwrap();
    host
}

/// An agent without words, whose tools the test calls.
async fn idle_agent(bus: &InProcessBus, folder: &Path) -> AgentHost {
    started(agent(&ScriptedModel::new(), bus, folder)).await
}

/// Calls `tell-joke`, and returns its text or its error.
async fn call(host: &AgentHost, arguments: &str) -> Result<String, (ToolErrorCode, String)> {
    let snapshot = host.tools().snapshot();
    let executor = snapshot.find("tell-joke").unwrap().executor();
    let cx = CallContext::new("s");
    let called = executor.execute(request("c", "tell-joke", arguments), &cx);
    match called.await {
        Ok(response) => Ok(response.content.into_words()),
        Err(error) => Err((error.code(), error.message().to_owned())),
    }
}

fn names(host: &AgentHost) -> Vec<String> {
    let snapshot = host.tools().snapshot();
    let names = snapshot
        .entries()
        .iter()
        .map(|tool| tool.registration().name.to_string());
    names.filter(|name| name.starts_with("tell")).collect()
}

/// A service that answers as its function does.
struct Served<F>(F);

impl<F> std::fmt::Debug for Served<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Served")
    }
}

#[async_trait]
impl<F: Fn(&str, &Value, &Value) -> Result<Value, BoxError> + Send + Sync + 'static> ToolService for Served<F> {
    async fn invoke(&self, user: &str, config: &Value, arguments: &Value) -> Result<Value, BoxError> {
        self.0(user, config, arguments)
    }
}

async fn serve(
    bus: &InProcessBus,
    answer: impl Fn(&str, &Value, &Value) -> Result<Value, BoxError> + Send + Sync + 'static,
) -> RunningToolService {
    let server = ToolServiceServer::described(SERVICE, Served(answer)).unwrap();
    server.serve(Arc::new(bus.clone())).await.unwrap()
}

/// A hand-written service: it answers each request with these bodies, under the request's id
/// unless they name another.
async fn replying(bus: &InProcessBus, bodies: &'static [&'static str]) -> (Subscription, Arc<Mutex<Vec<Value>>>) {
    let publisher = bus.clone();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let handler = move |delivery: Delivery| {
        seen.lock()
            .unwrap()
            .push(serde_json::from_slice(&delivery.envelope.body).unwrap());
        let bus = publisher.clone();
        let id = delivery.envelope.headers["id"].clone();
        async move {
            for body in bodies {
                let id = if body.contains("foreign") {
                    "another"
                } else {
                    id.as_str()
                };
                let reply = MessageEnvelope::new("reply", *body).with_header("id", id);
                bus.publish("tg.response.joke", Arc::new(reply)).await.unwrap();
            }
            Disposition::Ack
        }
    };
    (bus.on("tg.request.joke", "raw", handler).await.unwrap(), requests)
}

/// A service that answers in parts.
#[derive(Debug)]
struct Slowly;

#[async_trait]
impl ToolService for Slowly {
    async fn invoke(&self, _: &str, _: &Value, _: &Value) -> Result<Value, BoxError> {
        Err("it only streams".into())
    }

    async fn invoke_streaming(&self, _: &str, _: &Value, _: &Value, parts: &ReplyParts) -> Result<Value, BoxError> {
        parts.send("Why did ").await?;
        parts.send("").await?;
        parts.send("the llama ").await?;
        Ok("cross?".into())
    }
}
