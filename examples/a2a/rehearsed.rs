//! A stand-in for the assistant's model, with an answer to each message of this example.

use rockbot::chat::{ChatCall, ChatError, ModelInfo, ModelTier, Role, ToolCall};
use rockbot::prelude::*;
use serde_json::json;

/// The beginning of the words that tell the answer.
pub(crate) const TOLD: &str = "The mathematician says: ";

/// The model.
#[derive(Debug)]
pub(crate) struct Rehearsed;

#[async_trait]
impl ChatClient for Rehearsed {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let messages = &call.request.messages;
        let last = messages.last();
        if last.is_some_and(|message| message.role == Role::Tool) {
            return Ok(ChatResponse::text("I have asked the mathematician."));
        }
        let said = last.map(|message| message.text()).unwrap_or_default();
        if said.contains("The agent `mathematician`") {
            // A model would put it into words of its own.
            let answer = said.lines().filter(|line| !line.trim().is_empty());
            let answer = answer.rev().nth(1).unwrap_or_default().trim();
            return Ok(ChatResponse::text(format!("{TOLD}{answer}")));
        }
        // What a model makes of the question; it reads the guide to these tools first.
        let task = json!({ "agent_name": "mathematician", "skill": "calculate", "message": said });
        Ok(ChatResponse::calls([ToolCall::new(
            "1",
            "invoke_agent",
            task.to_string(),
        )]))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}
