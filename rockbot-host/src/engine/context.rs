//! What the model is shown at the start of a turn.

use rockbot_core::chat::{ChatMessage, ContextReason, OutputSchema, Provenance, Role};
use rockbot_core::store::{ConversationTurn, StoreError};
use rockbot_core::tool::ToolView;
use rockbot_core::turn::TurnRequest;

use super::TurnEngine;
use crate::turn::{Turn, TurnEvent};

/// How many entries of the conversation the model is shown.
const CONTEXT_TURNS: usize = 20;

impl TurnEngine {
    /// How a turn begins: what its model is shown.
    pub(super) async fn begin(&self, turn: &Turn) -> Result<TurnEvent, StoreError> {
        let request = turn.request();
        let tools = self.driver.tools.registry().snapshot();
        let behavior = self.behavior(turn.tier());
        let steps = turn.policy().budget.max_model_calls;
        let has_tools = !tools.view().is_empty();
        let mut context = self.context(request, tools.view(), has_tools.then_some(steps)).await?;
        if let Some(prompt) = &behavior.additional_system_prompt {
            context.insert(1, ChatMessage::system(&**prompt).because(ContextReason::ModelBehavior));
        }
        Ok(TurnEvent::Started {
            context,
            has_tools,
            tool_bytes: tools.view().json().len(),
            reminder: behavior.pre_tool_loop_prompt.map(|prompt| prompt.to_string()),
        })
    }

    /// The instructions, the conversation so far, the briefing and the message. What stays the same comes first, so
    /// that providers can keep it cached.
    async fn context(
        &self,
        request: &TurnRequest,
        tools: &ToolView,
        steps: Option<u32>,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        let past = self
            .memory
            .recent(&request.principal, &request.session, CONTEXT_TURNS)
            .await?;
        let instructions = self.prompt.current();
        self.prefix.look(&instructions, tools.json());
        let mut messages = Vec::with_capacity(past.len() + 5);
        messages.push(ChatMessage::system(&*instructions));
        messages.extend(past.into_iter().map(message));
        messages.extend(request.output.as_ref().map(shape));
        messages.extend(self.briefer.messages(&*self.driver.clock, steps));
        messages.push(ChatMessage::user(&*request.text));
        Ok(messages)
    }
}

fn message(entry: ConversationTurn) -> ChatMessage {
    let (role, provenance) = match entry.role {
        Role::User => (Role::User, Provenance::USER),
        // It stands where the answer would: not every provider takes system messages this late.
        Role::System => (Role::Assistant, Provenance::HOST),
        role => (role, Provenance::MODEL),
    };
    ChatMessage::text_of(role, entry.content, provenance).because(ContextReason::History)
}

fn shape(output: &OutputSchema) -> ChatMessage {
    let text = format!(
        "Give the answer to the next message as JSON that fits this schema, and nothing else: {}",
        output.schema
    );
    ChatMessage::text_of(Role::User, text, Provenance::HOST).because(ContextReason::Shape)
}
