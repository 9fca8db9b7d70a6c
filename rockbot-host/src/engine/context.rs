//! What the model is shown at the start of a turn.

use rockbot_core::chat::{ChatMessage, ContextReason, OutputSchema, Provenance, Role};
use rockbot_core::context::Origin;
use rockbot_core::recall::ContextQuery;
use rockbot_core::store::{ConversationTurn, StoreError};
use rockbot_core::turn::TurnRequest;

use super::TurnEngine;
use crate::behavior::ModelBehavior;
use crate::driver::GatheredContext;
use crate::turn::{Turn, TurnEvent};

/// How many entries of the conversation the model is shown.
const CONTEXT_TURNS: usize = 20;

/// How many of the user's earlier messages are searched by.
const EARLIER: usize = 3;

impl TurnEngine {
    /// How a turn begins: what its model is shown.
    pub(super) async fn begin(&self, turn: &Turn) -> Result<TurnEvent, StoreError> {
        let request = turn.request();
        let tools = self.tools.registry().snapshot();
        let behavior = self.behavior(turn.tier());
        let steps = turn.policy().budget.max_model_calls;
        let has_tools = !tools.view().is_empty();
        let past = self
            .memory
            .recent(&request.principal, &request.session, CONTEXT_TURNS)
            .await?;
        let (known, zone) = tokio::join!(self.known(request, &past), self.briefer.zone_of(&request.principal));
        let instructions = self.prompt.current();
        self.prefix.look(&instructions, tools.view().json());
        let behavior_prompt = behavior.additional_system_prompt.as_deref();
        let behavior_prompt =
            behavior_prompt.map(|text| ChatMessage::system(text).because(ContextReason::ModelBehavior));

        // What stays the same comes first, so that providers can keep it cached.
        let mut context = Vec::with_capacity(past.len() + 8);
        context.push(ChatMessage::system(&*instructions));
        context.extend(known.instructions);
        context.extend(behavior_prompt);
        context.extend(past.into_iter().map(message));
        context.extend(request.output.as_ref().map(shape));
        context.extend(known.data);
        context.extend(result_mode(request, &behavior));
        let steps = has_tools.then_some(steps);
        context.extend(self.briefer.messages(&*self.clock, zone, steps));
        context.push(ChatMessage::user(&*request.text));
        Ok(TurnEvent::Started {
            context,
            recalled: known.recalled,
            has_tools,
            tool_bytes: tools.view().json().len(),
            reminder: behavior.pre_tool_loop_prompt.map(|prompt| prompt.to_string()),
        })
    }

    /// What the agent knows that may help with the message.
    async fn known(&self, request: &TurnRequest, past: &[ConversationTurn]) -> GatheredContext {
        if self.sources.is_empty() {
            return GatheredContext::default();
        }
        let said = past.iter().rev().filter(|entry| entry.role == Role::User);
        let earlier = said.take(EARLIER).map(|entry| entry.content.clone()).collect();
        let (principal, session) = (request.principal.clone(), request.session.clone());
        let query = ContextQuery::new(principal, session, request.turn_id(), &*request.text);
        self.sources.gather(&query.with_earlier(earlier)).await
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

/// How the answer tells what tools return, when a schedule asks.
fn result_mode(request: &TurnRequest, behavior: &ModelBehavior) -> Option<ChatMessage> {
    let is_scheduled = request.origin == Origin::Scheduled;
    let text = is_scheduled.then(|| behavior.scheduled_task_result_mode.instruction())??;
    Some(ChatMessage::text_of(Role::User, text.to_owned(), Provenance::HOST).because(ContextReason::ModelBehavior))
}

fn shape(output: &OutputSchema) -> ChatMessage {
    let text = format!(
        "Give the answer to the next message as JSON that fits this schema, and nothing else: {}",
        output.schema
    );
    ChatMessage::text_of(Role::User, text, Provenance::HOST).because(ContextReason::Shape)
}
