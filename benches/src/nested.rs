//! A turn below a call: a lead whose model answers in process, and the agent that the lead calls.

use std::path::Path;

use async_trait::async_trait;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier, Role, ToolCall};
use rockbot_core::tool::{ToolFilter, tool};
use rockbot_host::{AgentHost, AgentTool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{USER, ours};

/// Name of the tool that the lead calls.
const CALLED: &str = "called";

/// Name of the agent that the lead calls.
const WORKER: &str = "worker";

/// A model that calls one tool and answers with its result.
#[derive(Debug)]
struct Lead;

#[async_trait]
impl ChatClient for Lead {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let result = call.request.messages.iter().find(|message| message.role == Role::Tool);
        if let Some(result) = result {
            return Ok(ChatResponse::text(result.text()));
        }
        let arguments = serde_json::json!({ "task": USER }).to_string();
        Ok(ChatResponse::calls([ToolCall::new("call_1", CALLED, arguments)]))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// The arguments of the tool that returns at once.
#[derive(Deserialize, JsonSchema)]
struct Task {
    task: String,
}

/// Creates a host with a lead and a worker, which asks the server at `base` and has `tools`
/// tools. The lead's tool is the worker if `is_below`, else a tool that returns at once.
pub fn host(base: &str, tools: usize, data: &Path, is_below: bool) -> AgentHost {
    let host = ours::builder(tools, data, ours::Extras::default())
        .chat(Lead)
        .agent(WORKER, |agent| {
            agent
                .instructions(crate::instructions())
                .chat(ours::client(base))
                .tools(ToolFilter::all().without([CALLED]))
        })
        .build()
        .expect("the host is complete");
    let added = if is_below {
        host.add_tool(worker(&host))
    } else {
        let at_once = tool(
            CALLED,
            |Task { task }: Task| async move { format!("{} bytes", task.len()) },
        );
        host.add_tool(at_once.description("Does the task."))
    };
    added.expect("the name is new");
    host
}

fn worker(host: &AgentHost) -> AgentTool {
    let worker = host.agent_called(WORKER).expect("the host has a worker");
    worker.as_tool(CALLED, "Does the task.")
}

/// Asks the lead one message. Its tool runs a turn of the worker if `is_below`; else the worker
/// is asked afterwards.
pub async fn answer(host: &AgentHost, session: String, is_below: bool) -> String {
    let lead = host.agent().ask(session.clone(), USER).await.expect("an answer");
    if is_below {
        return lead.text;
    }
    let worker = host.agent_called(WORKER).expect("the host has a worker");
    worker.ask(session, USER).await.expect("an answer").text
}
