//! The reports of a turn as the events of a run.

use std::collections::{HashSet, VecDeque};

use axum::response::sse::Event;
use rockbot_core::turn::{ApprovalRequest, TurnOutcome, TurnProgress, TurnStatus};
use rockbot_core::{CallId, TurnId};
use serde_json::{Value, json};

use super::input::RunInput;
use super::interrupt::{ShownInterrupt, pending};
use crate::asked::SaidText;
use crate::door::Caller;
use crate::sse::{EventForm, json as json_event};

/// Version of the protocol.
const VERSION: &str = "1.0";

/// A message that is being told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Text,
    Reasoning,
}

/// The form of the events.
pub(super) struct AgUiEvents {
    caller: Caller,
    thread: String,
    run: String,
    turn: TurnId,
    /// Calls that the client was told of by an interrupt.
    announced: HashSet<CallId>,
    open: Open,
    /// Number of messages so far.
    messages: u64,
    text: SaidText,
    is_over: bool,
}

impl AgUiEvents {
    pub(super) fn new(caller: &Caller, input: &RunInput, turn: TurnId, announced: HashSet<CallId>) -> Self {
        Self {
            caller: caller.clone(),
            thread: input.thread_id.clone(),
            run: input.run_id.clone(),
            turn,
            announced,
            open: Open::Nothing,
            messages: 0,
            text: SaidText::default(),
            is_over: false,
        }
    }

    /// Returns the event that opens the run.
    pub(super) fn started(&self) -> Event {
        let Self { thread, run, .. } = self;
        json_event(&json!({"type": "RUN_STARTED", "threadId": thread, "runId": run, "protocolVersion": VERSION}))
    }

    /// Ends the run if calls wait for the user.
    pub(super) fn interrupt(&mut self, pending: &[ApprovalRequest], sequence: u64, out: &mut impl Extend<Event>) {
        if pending.is_empty() {
            return;
        }
        self.is_over = true;
        let mut events = Vec::new();
        self.close(&mut events);
        for approval in pending {
            if self.announced.insert(approval.call.clone()) {
                call_events(&approval.call, approval.tool.as_str(), &approval.arguments, &mut events);
            }
        }
        let at = format!("{}.{sequence}", self.caller.door.epoch);
        let shown = pending
            .iter()
            .map(|approval| ShownInterrupt::new(&self.turn, &at, approval));
        let outcome = json!({"type": "interrupt", "interrupts": shown.collect::<Vec<_>>()});
        events.push(self.finished(&outcome, None));
        out.extend(events.iter().map(json_event));
    }

    fn finished(&self, outcome: &Value, ended: Option<&TurnOutcome>) -> Value {
        let Self { thread, run, turn, .. } = self;
        let mut event = json!({
            "type": "RUN_FINISHED", "threadId": thread, "runId": run, "result": {"turn": turn}, "outcome": outcome,
        });
        if let Some(ended) = ended {
            if !ended.outside_statements.is_empty() {
                event["result"]["outsideStatements"] = json!(ended.outside_statements);
            }
            let usage = ended.usage;
            event["usage"] = json!([{
                "inputTokens": usage.input,
                "outputTokens": usage.output,
                "totalTokens": usage.total(),
                "cachedInputTokens": usage.cached,
                "reasoningTokens": usage.reasoning,
            }]);
        }
        event
    }

    fn message(&self) -> String {
        format!("{}-{}", self.turn, self.messages)
    }

    /// Opens a message of a kind, and closes another one.
    fn begin(&mut self, open: Open, out: &mut Vec<Value>) {
        if self.open == open {
            return;
        }
        self.close(out);
        self.open = open;
        self.messages += 1;
        let id = self.message();
        if open == Open::Reasoning {
            out.push(json!({"type": "REASONING_START", "messageId": id}));
            out.push(json!({"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"}));
        } else {
            out.push(json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}));
        }
    }

    fn close(&mut self, out: &mut Vec<Value>) {
        let id = self.message();
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing => {}
            Open::Text => out.push(json!({"type": "TEXT_MESSAGE_END", "messageId": id})),
            Open::Reasoning => {
                out.push(json!({"type": "REASONING_MESSAGE_END", "messageId": id}));
                out.push(json!({"type": "REASONING_END", "messageId": id}));
            }
        }
    }

    fn say(&mut self, text: &str, out: &mut Vec<Value>) {
        // The protocol has no empty pieces.
        if !text.is_empty() {
            self.begin(Open::Text, out);
            out.push(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": self.message(), "delta": text}));
        }
    }

    /// Ends a message for good: what follows is another one.
    fn part(&mut self, out: &mut Vec<Value>) {
        self.close(out);
        self.text = SaidText::default();
    }

    fn end(&mut self, outcome: &TurnOutcome, out: &mut Vec<Value>) {
        self.is_over = true;
        if outcome.is_answer() {
            if let Some(rest) = self.text.rest(&outcome.text) {
                self.say(&rest, out);
            }
            self.close(out);
            return out.push(self.finished(&json!({"type": "success"}), Some(outcome)));
        }
        self.close(out);
        out.push(match outcome.status {
            TurnStatus::Cancelled | TurnStatus::Superseded => {
                self.finished(&json!({"type": "cancelled"}), Some(outcome))
            }
            _ => json!({"type": "RUN_ERROR", "message": outcome.text, "code": "turn_failed"}),
        });
    }

    fn custom(name: &str, value: &Value, out: &mut Vec<Value>) {
        out.push(json!({"type": "CUSTOM", "name": format!("rockbot.{name}"), "value": value}));
    }

    fn tell(&mut self, progress: TurnProgress, out: &mut Vec<Value>) {
        match progress {
            TurnProgress::Delta(text) => {
                let text = self.text.say(text);
                self.say(&text, out);
            }
            TurnProgress::Reasoning(text) if !text.is_empty() => {
                self.begin(Open::Reasoning, out);
                let id = self.message();
                out.push(json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": text}));
            }
            // The protocol takes nothing back: the client is told which message is void.
            TurnProgress::Retract => {
                let id = self.message();
                self.part(out);
                Self::custom("retract", &json!({"messageId": id}), out);
            }
            TurnProgress::ToolStarted { call, tool, arguments } => {
                self.part(out);
                if !self.announced.contains(&call) {
                    call_events(&call, tool.as_str(), &arguments, out);
                }
            }
            TurnProgress::ToolFinished { call, content, .. } => {
                self.part(out);
                self.messages += 1;
                let id = self.message();
                let result = json!({
                    "type": "TOOL_CALL_RESULT", "messageId": id, "toolCallId": call, "content": content, "role": "tool",
                });
                out.push(result);
            }
            TurnProgress::ToolProgress { call, text, .. } => {
                Self::custom("tool_progress", &json!({"toolCallId": call, "text": text}), out);
            }
            TurnProgress::Note(text) => Self::custom("note", &json!({"text": text}), out),
            TurnProgress::Waiting { why, .. } => {
                Self::custom("waiting", &json!({"text": why.in_words(None)}), out);
            }
            TurnProgress::Final(outcome) => self.end(&outcome, out),
            _ => {}
        }
    }
}

/// Appends the events of a call whose arguments are complete.
fn call_events(call: &CallId, tool: &str, arguments: &str, out: &mut Vec<Value>) {
    out.push(json!({"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": tool}));
    out.push(json!({"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": arguments}));
    out.push(json!({"type": "TOOL_CALL_END", "toolCallId": call}));
}

impl EventForm for AgUiEvents {
    fn report(&mut self, progress: TurnProgress, sequence: u64, out: &mut VecDeque<Event>) {
        if matches!(progress, TurnProgress::ApprovalNeeded(_)) {
            // All calls that wait; none of them if a person has decided elsewhere meanwhile.
            let pending = pending(&self.caller, &self.turn);
            return self.interrupt(&pending, sequence, out);
        }
        let mut events = Vec::new();
        self.tell(progress, &mut events);
        out.extend(events.iter().map(json_event));
    }

    fn halted(&mut self, out: &mut VecDeque<Event>) {
        let stopping = "the host is stopping: send the run again when it runs";
        out.push_back(json_event(
            &json!({"type": "RUN_ERROR", "message": stopping, "code": "stopping"}),
        ));
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}
