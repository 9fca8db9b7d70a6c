//! The context of a turn: the messages that the model is shown at its start.
//!
//! The context of a turn is recorded when its session is free, not at acceptance: only then is
//! the conversation before it complete.

use rockbot_core::chat::{ChatMessage, ContextReason, OutputMode, OutputSchema, Provenance, Role};
use rockbot_core::context::Origin;
use rockbot_core::recall::ContextQuery;
use rockbot_core::store::{CallRound, ConversationMemory as _, StoreError};
use rockbot_core::tool::ToolView;
use rockbot_core::turn::TurnRequest;

use super::TurnEngine;
use super::history::{self, ShownHistory};
use crate::agents::HostAgent;
use crate::behavior::ModelBehavior;
use crate::driver::{AnswerTool, GatheredContext};
use crate::turn::{Revision, Turn, TurnEvent, from_sender};

/// Maximum number of the user's earlier messages in the query to context sources.
const EARLIER: usize = 3;

impl TurnEngine {
    /// Builds the context and returns the event that starts the turn with it, which records the
    /// layers' revision.
    pub(super) async fn begin(&self, turn: &Turn, revised: Option<Box<Revision>>) -> Result<TurnEvent, StoreError> {
        let request = turn.request();
        let agent = self.agents.of(request);
        let tools = self.tools.view(request.tools.as_ref(), false, &[]);
        if agent.is_program {
            return Ok(of_program(turn, revised, &tools));
        }
        let behavior = self.behavior(request, turn.tier());
        let steps = turn.policy().budget.max_model_calls;
        let has_tools = !tools.is_empty();
        let past = self.past(request, has_tools).await?;
        let (gathered, zone) = tokio::join!(
            self.gather(request, &past.messages),
            self.briefing.zone_of(&request.principal)
        );
        let mut active_tools = past.active_tools;
        active_tools.extend(gathered.needs);
        // Prompt caching: providers cache the longest common prefix, so messages that stay the same
        // between requests come first, and messages that change with each turn come last.
        let mut context = Vec::with_capacity(past.messages.len() + 8);
        self.push_instructions(agent, &mut context, gathered.instructions, &behavior, &tools);
        // Last of the system messages, which reach the model as one: the texts before them stay
        // cached.
        context.extend(request.instructions.as_deref().map(of_request));
        context.extend(past.messages);
        context.extend(
            request
                .output
                .as_ref()
                .map(|output| shape(output, turn.policy().output_mode)),
        );
        context.extend(gathered.data);
        context.extend(result_mode(request, &behavior));
        let steps = has_tools.then_some(steps);
        context.extend(self.briefing.messages(&*self.clock, zone, steps));
        context.push(question(request));
        Ok(TurnEvent::Started {
            revised,
            context,
            heard: self.told_by_tools(request, has_tools),
            recalled: gathered.recalled,
            has_tools,
            tool_bytes: self
                .tools
                .view(request.tools.as_ref(), false, &active_tools)
                .json()
                .len(),
            reminder: behavior.pre_tool_loop_prompt.map(|prompt| prompt.to_string()),
            input: turn.replaced_input().cloned(),
            active_tools,
            endorsed: past.endorsed,
        })
    }

    /// Appends the instructions of the host, of context sources and of the model's behavior.
    fn push_instructions(
        &self,
        agent: &HostAgent,
        context: &mut Vec<ChatMessage>,
        gathered: impl IntoIterator<Item = ChatMessage>,
        behavior: &ModelBehavior,
        tools: &ToolView,
    ) {
        let instructions = agent.prompt.current();
        // Each agent has a prefix of its own, and most hosts have one agent.
        if std::ptr::eq(agent, &self.agents.own) {
            self.prefix.observe(&instructions, tools.json());
        }
        context.push(ChatMessage::system(&*instructions));
        context.extend(gathered);
        let of_behavior = behavior.additional_system_prompt.as_deref();
        context.extend(of_behavior.map(|text| ChatMessage::system(text).because(ContextReason::ModelBehavior)));
    }

    /// Returns the programs whose text describes tools to the model.
    fn told_by_tools(&self, request: &TurnRequest, has_tools: bool) -> Vec<String> {
        if has_tools {
            self.tools
                .text_label(request.tools.as_ref())
                .sources()
                .iter()
                .map(ToString::to_string)
                .collect()
        } else {
            Vec::new()
        }
    }

    /// Returns the conversation before the turn.
    ///
    /// Without tools it has no calls: some servers refuse them in a request that offers none.
    async fn past(&self, request: &TurnRequest, has_tools: bool) -> Result<ShownHistory, StoreError> {
        if let Some(messages) = &request.history {
            return Ok(history::given(messages, request));
        }
        let principal = &request.principal;
        let session = &request.session;
        let max_entries = self.history.max_entries;
        let mut recent = self.memory.recent(principal, session, max_entries).await?;
        if let Some(idle_timeout) = self.history.idle_timeout {
            recent = history::after_pause(recent, idle_timeout, self.clock.now());
        }
        let recent = self.window.slide(principal, session, recent, max_entries);
        // A model that writes its calls as text goes by its own example: without one, it tells of
        // calls in place of calling.
        let writes_calls = recent.iter().flat_map(|entry| &entry.rounds).last();
        let writes_calls = writes_calls.is_some_and(|round| round.from_text);
        let shows_all = self.history.show_calls;
        let is_shown = |round: &CallRound| has_tools && (shows_all || (writes_calls && round.from_text));
        Ok(history::shown(recent, is_shown))
    }

    /// Asks the context sources about the message and the user's messages before it.
    async fn gather(&self, request: &TurnRequest, past: &[ChatMessage]) -> GatheredContext {
        if self.sources.is_empty() {
            return GatheredContext::default();
        }
        let messages = past.iter().rev().filter(|message| message.role == Role::User);
        let earlier = messages
            .take(EARLIER)
            .map(|message| message.content.words().into_owned())
            .collect();
        let principal = request.principal.clone();
        let session = request.session.clone();
        let query = ContextQuery::new(principal, session, request.turn_id(), &*request.content.text());
        let query = query.with_earlier(earlier).with_namespace(request.own_namespace());
        self.sources.gather(&query).await
    }
}

/// Returns the event that starts the turn of a program, which reads its message alone.
fn of_program(turn: &Turn, revised: Option<Box<Revision>>, tools: &ToolView) -> TurnEvent {
    TurnEvent::Started {
        revised,
        context: vec![question(turn.request())],
        heard: Vec::new(),
        recalled: Vec::new(),
        has_tools: !tools.is_empty(),
        tool_bytes: 0,
        reminder: None,
        input: None,
        active_tools: Vec::new(),
        endorsed: Vec::new(),
    }
}

/// Returns the message that the turn answers. Its parts have no more trust than its sender.
fn question(request: &TurnRequest) -> ChatMessage {
    let content = from_sender(request.content.clone(), request);
    let message = ChatMessage::new(Role::User, content, Provenance::of_sender(request.trust));
    match message.why() {
        ContextReason::Message => message,
        // A part of another origin, such as a web page that the user passes on, does not make it another
        // message.
        _ => message.because(ContextReason::Message),
    }
}

/// Returns the instruction about tool results in the answer, if the message, or the model's
/// behavior for scheduled messages, has one.
fn result_mode(request: &TurnRequest, behavior: &ModelBehavior) -> Option<ChatMessage> {
    let is_scheduled = request.origin == Origin::Scheduled;
    let of_model = is_scheduled.then_some(behavior.scheduled_task_result_mode);
    let text = request.result_mode.or(of_model)?.instruction()?;
    Some(ChatMessage::new(Role::User, text.to_owned(), Provenance::HOST).because(ContextReason::ModelBehavior))
}

fn of_request(instructions: &str) -> ChatMessage {
    ChatMessage::system(instructions).because(ContextReason::RequestInstructions)
}

fn shape(output: &OutputSchema, mode: OutputMode) -> ChatMessage {
    let text = match mode {
        OutputMode::Tool => format!(
            "When nothing else is left to do for the next message, give its answer by calling `{}`, and in no other way.",
            AnswerTool::NAME
        ),
        _ => format!(
            "Give the answer to the next message as JSON that fits this schema, and nothing else: {}",
            output.text_for_models()
        ),
    };
    ChatMessage::new(Role::User, text, Provenance::HOST).because(ContextReason::Shape)
}
