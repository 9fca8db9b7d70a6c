//! The record of a task: the facts that the journal of turns does not keep.

use std::time::Duration;

use rockbot_core::{Principal, Timestamp, TurnId};
use serde::{Deserialize, Serialize};

use crate::a2a_wire::{Message, PushConfig, TaskState};

/// Maximum length of the JSON of a message that is kept as history. Longer messages are left out.
const MAX_KEPT: usize = 16 << 10;

/// Time that a task is kept after its end, as outcomes of turns are.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Time after which a task without an end is given up.
const ABANDONED: Duration = Duration::from_secs(8 * 24 * 60 * 60);

/// A task: the turns that work on it, one for each message.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::a2a_server) struct TaskRecord {
    /// Id of the task, which is the id of its first turn.
    pub(in crate::a2a_server) id: String,
    pub(in crate::a2a_server) principal: Principal,
    pub(in crate::a2a_server) context: String,
    /// The turns, one for each message of the caller, in order.
    pub(in crate::a2a_server) turns: Vec<TaskTurn>,
    /// The state, as it was known last.
    pub(in crate::a2a_server) state: TaskState,
    /// Time of the last change of the state.
    pub(in crate::a2a_server) updated: Timestamp,
    /// The addresses to which changes are told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::a2a_server) pushes: Vec<TaskPush>,
}

/// An address to which the changes of a task are told.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::a2a_server) struct TaskPush {
    pub(in crate::a2a_server) config: PushConfig,
    /// `true` for a client of version 0.3.
    pub(in crate::a2a_server) is_old: bool,
    /// The state that was told last, or that the client knew before.
    pub(in crate::a2a_server) told: Option<TaskState>,
}

/// A turn of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::a2a_server) struct TaskTurn {
    pub(in crate::a2a_server) turn: TurnId,
    /// The message that began the turn; `None` if the message was too long to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::a2a_server) message: Option<Message>,
}

impl TaskTurn {
    pub(in crate::a2a_server) fn new(turn: TurnId, message: &Message) -> Self {
        let length = serde_json::to_vec(message).map_or(usize::MAX, |json| json.len());
        Self {
            turn,
            message: (length <= MAX_KEPT).then(|| message.clone()),
        }
    }
}

impl TaskRecord {
    /// Returns the turn that the latest message began.
    pub(in crate::a2a_server) fn last_turn(&self) -> Option<&TurnId> {
        self.turns.last().map(|turn| &turn.turn)
    }

    /// Returns the first address that does not know the state of the task.
    pub(in crate::a2a_server) fn pending_push(&self) -> Option<&TaskPush> {
        self.pushes.iter().find(|push| push.told != Some(self.state))
    }

    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        let age = now.since(self.updated);
        age > ABANDONED || (self.state.is_terminal() && age > KEPT)
    }
}
