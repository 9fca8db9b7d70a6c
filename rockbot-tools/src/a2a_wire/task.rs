//! Tasks, their artifacts, and the items of a stream about them.

use rockbot_core::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use super::message::bounded_list;
use super::{Message, Part};

/// A piece of work that a client asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Task {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) context_id: String,
    pub(crate) status: TaskStatus,
    #[serde(
        default,
        deserialize_with = "some_artifacts",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) artifacts: Option<Vec<Artifact>>,
    /// A client keeps its own messages.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub(crate) history: Vec<Message>,
}

/// The status of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TaskStatus {
    pub(crate) state: TaskState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<Message>,
    /// A client goes by its own clock.
    #[serde(serialize_with = "rockbot_core::rfc3339::serialize", skip_deserializing)]
    pub(crate) timestamp: Timestamp,
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TaskState {
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
    pub(crate) fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Returns `true` if the task has ended, or waits for the client or for a person.
    pub(crate) fn is_settled(self) -> bool {
        self.is_terminal() || matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// A result of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Artifact {
    #[serde(default)]
    pub(crate) artifact_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    #[serde(default, deserialize_with = "bounded_list")]
    pub(crate) parts: Vec<Part>,
}

impl Artifact {
    /// Creates an artifact without a name.
    pub(crate) fn new(id: &str, parts: Vec<Part>) -> Self {
        Self {
            artifact_id: id.to_owned(),
            name: None,
            description: None,
            parts,
        }
    }
}

fn some_artifacts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Artifact>>, D::Error> {
    bounded_list(deserializer).map(Some)
}

/// A page of tasks.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedTasks {
    pub(crate) tasks: Vec<Task>,
    pub(crate) next_page_token: String,
    pub(crate) page_size: usize,
    pub(crate) total_size: usize,
}

/// An item of a stream, and the answer to a message.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum StreamItem {
    Task(Task),
    /// The answer of an agent that makes no task of a message.
    Message(Message),
    StatusUpdate(StatusUpdate),
    ArtifactUpdate(ArtifactUpdate),
}

/// A change of a task's status.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusUpdate {
    #[serde(default)]
    pub(crate) task_id: String,
    #[serde(default)]
    pub(crate) context_id: String,
    pub(crate) status: TaskStatus,
}

/// A piece of an artifact, or all of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ArtifactUpdate {
    #[serde(default)]
    pub(crate) task_id: String,
    #[serde(default)]
    pub(crate) context_id: String,
    pub(crate) artifact: Artifact,
    #[serde(default)]
    pub(crate) append: bool,
    #[serde(default)]
    pub(crate) last_chunk: bool,
}
