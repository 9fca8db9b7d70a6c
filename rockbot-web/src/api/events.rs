//! The events of a turn, in the form of our own.

use std::collections::VecDeque;

use axum::response::sse::Event;
use rockbot_core::context::WaitReason;
use rockbot_core::turn::{ApprovalRequest, TurnOutcome, TurnProgress};
use rockbot_core::{CallId, MessageId, SessionId, Timestamp, ToolName, TurnId};
use serde::Serialize;

use crate::door::Caller;
use crate::sse::{EventForm, json};

/// Ending of the id of a turn's last event.
const END: &str = "end";

/// A message that was accepted: it is answered, also if the process is killed now.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Accepted {
    pub(super) turn: TurnId,
    pub(super) session: SessionId,
    pub(super) message: MessageId,
}

/// An event of a turn: the data of one server-sent event.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum ApiEvent<'a> {
    /// The message was accepted as this turn.
    Accepted(&'a Accepted),
    /// The host was restarted since the client's last event: the events begin anew.
    Restarted,
    /// Next piece of the answer.
    Delta {
        text: &'a str,
    },
    /// Next piece of the model's reasoning.
    Reasoning {
        text: &'a str,
    },
    /// The deltas since the last tool call are void: the model starts over.
    Retract,
    ToolStarted {
        call: &'a CallId,
        tool: &'a ToolName,
        arguments: &'a str,
    },
    ToolProgress {
        call: &'a CallId,
        tool: &'a ToolName,
        text: &'a str,
    },
    ToolFinished {
        call: &'a CallId,
        tool: &'a ToolName,
        is_error: bool,
        content: &'a str,
    },
    ApprovalNeeded {
        approval: &'a ApprovalRequest,
    },
    Note {
        text: &'a str,
    },
    Waiting {
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        why: &'a WaitReason,
        text: String,
    },
    /// The turn has ended. No event follows.
    Final {
        outcome: &'a TurnOutcome,
    },
}

/// The form of the events, with ids that name the process and the position in the turn.
pub(super) struct ApiEvents {
    epoch: String,
}

impl ApiEvents {
    pub(super) fn new(caller: &Caller) -> Self {
        Self {
            epoch: caller.door.epoch.clone(),
        }
    }
}

/// Returns the event of a message that was accepted. It has no id: who has read no other event
/// reads the turn from its beginning.
pub(super) fn accepted(message: &Accepted) -> Event {
    json(&ApiEvent::Accepted(message))
}

/// Returns the event for a client whose last event was of an earlier process.
pub(super) fn restarted() -> Event {
    json(&ApiEvent::Restarted)
}

/// The place in a turn that a client has read up to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LastEvent {
    /// The end: nothing follows.
    End,
    /// A position of this process.
    At(u64),
    /// A position of an earlier process, which says nothing in this one.
    Earlier,
}

impl LastEvent {
    /// Reads the id of an event.
    pub(super) fn read(id: &str, epoch: &str) -> Self {
        match id.rsplit_once('.') {
            Some((_, END)) => Self::End,
            Some((of, at)) if of == epoch => at.parse().map_or(Self::Earlier, Self::At),
            _ => Self::Earlier,
        }
    }
}

impl EventForm for ApiEvents {
    fn report(&mut self, progress: TurnProgress, sequence: u64, out: &mut VecDeque<Event>) {
        let event = match &progress {
            TurnProgress::Delta(text) => ApiEvent::Delta { text },
            TurnProgress::Reasoning(text) => ApiEvent::Reasoning { text },
            TurnProgress::Retract => ApiEvent::Retract,
            TurnProgress::ToolStarted { call, tool, arguments } => ApiEvent::ToolStarted { call, tool, arguments },
            TurnProgress::ToolProgress { call, tool, text } => ApiEvent::ToolProgress { call, tool, text },
            TurnProgress::ToolFinished {
                call,
                tool,
                is_error,
                content,
            } => ApiEvent::ToolFinished {
                call,
                tool,
                is_error: *is_error,
                content,
            },
            TurnProgress::ApprovalNeeded(approval) => ApiEvent::ApprovalNeeded { approval },
            TurnProgress::Note(text) => ApiEvent::Note { text },
            TurnProgress::Waiting { until, why } => ApiEvent::Waiting {
                until: *until,
                why,
                text: why.in_words(None),
            },
            TurnProgress::Final(outcome) => ApiEvent::Final { outcome },
            // A newer report that this form does not know.
            _ => return,
        };
        let epoch = &self.epoch;
        let id = match progress {
            TurnProgress::Final(_) => format!("{epoch}.{END}"),
            _ => format!("{epoch}.{sequence}"),
        };
        out.push_back(json(&event).id(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_of_another_process_says_nothing() {
        assert_eq!(LastEvent::read("e1.17", "e1"), LastEvent::At(17));
        assert_eq!(LastEvent::read("e0.17", "e1"), LastEvent::Earlier);
        assert_eq!(LastEvent::read("e0.end", "e1"), LastEvent::End);
        for odd in ["", "17", "e1.", "e1.x", ".17", "e1.-3"] {
            assert_eq!(LastEvent::read(odd, "e1"), LastEvent::Earlier, "{odd}");
        }
    }
}
