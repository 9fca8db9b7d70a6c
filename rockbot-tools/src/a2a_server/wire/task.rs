//! Tasks, their artifacts, and the items of a stream about them.

use rockbot_core::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Message, Part};

/// A piece of work that a client asked for.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::a2a_server) struct Task {
    pub(in crate::a2a_server) id: String,
    pub(in crate::a2a_server) context_id: String,
    pub(in crate::a2a_server) status: TaskStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::a2a_server) artifacts: Option<Vec<Artifact>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::a2a_server) history: Vec<Message>,
}

/// The status of a task.
#[derive(Debug, Clone, Serialize)]
pub(in crate::a2a_server) struct TaskStatus {
    pub(in crate::a2a_server) state: TaskState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::a2a_server) message: Option<Message>,
    #[serde(serialize_with = "rockbot_core::rfc3339::serialize")]
    pub(in crate::a2a_server) timestamp: Timestamp,
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::a2a_server) enum TaskState {
    /// As a query: any.
    #[serde(rename = "TASK_STATE_UNSPECIFIED")]
    Unspecified,
    #[serde(rename = "TASK_STATE_SUBMITTED")]
    Submitted,
    #[serde(rename = "TASK_STATE_WORKING")]
    Working,
    #[serde(rename = "TASK_STATE_COMPLETED")]
    Completed,
    #[serde(rename = "TASK_STATE_FAILED")]
    Failed,
    #[serde(rename = "TASK_STATE_CANCELED")]
    Canceled,
    #[serde(rename = "TASK_STATE_INPUT_REQUIRED")]
    InputRequired,
    #[serde(rename = "TASK_STATE_REJECTED")]
    Rejected,
    #[serde(rename = "TASK_STATE_AUTH_REQUIRED")]
    AuthRequired,
}

impl TaskState {
    /// Returns `true` if the task changes no more.
    pub(in crate::a2a_server) fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Returns `true` if the task has ended, or waits for the client or for a person.
    pub(in crate::a2a_server) fn is_settled(self) -> bool {
        self.is_terminal() || matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// A result of a task.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::a2a_server) struct Artifact {
    pub(in crate::a2a_server) artifact_id: String,
    pub(in crate::a2a_server) parts: Vec<Part>,
}

/// A page of tasks.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::a2a_server) struct ListedTasks {
    pub(in crate::a2a_server) tasks: Vec<Task>,
    pub(in crate::a2a_server) next_page_token: String,
    pub(in crate::a2a_server) page_size: usize,
    pub(in crate::a2a_server) total_size: usize,
}

/// The answer to a message.
#[derive(Debug, Serialize)]
pub(in crate::a2a_server) struct SendResult {
    pub(in crate::a2a_server) task: Task,
}

/// An item of a stream.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::a2a_server) enum StreamItem {
    Task(Task),
    StatusUpdate(StatusUpdate),
    ArtifactUpdate(ArtifactUpdate),
}

/// A change of a task's status.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::a2a_server) struct StatusUpdate {
    pub(in crate::a2a_server) task_id: String,
    pub(in crate::a2a_server) context_id: String,
    pub(in crate::a2a_server) status: TaskStatus,
}

/// A piece of an artifact, or all of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::a2a_server) struct ArtifactUpdate {
    pub(in crate::a2a_server) task_id: String,
    pub(in crate::a2a_server) context_id: String,
    pub(in crate::a2a_server) artifact: Artifact,
    pub(in crate::a2a_server) append: bool,
    pub(in crate::a2a_server) last_chunk: bool,
}
