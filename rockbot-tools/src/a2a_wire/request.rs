//! The parameters of the operations.

use serde::{Deserialize, Serialize};

use super::{Message, PushConfig, TaskState};

/// The parameters of `SendMessage` and `SendStreamingMessage`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SendMessage {
    pub(crate) message: Message,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) configuration: Option<SendConfiguration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<SendMetadata>,
}

/// The metadata of a request that have a meaning here: the original names the skill here, and not
/// in the message.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SendMetadata {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) skill: Option<String>,
    /// The agents through which the task came, with commas. The protocol has no such thing.
    #[serde(default, rename = "rb-agent-chain", skip_serializing_if = "Option::is_none")]
    pub(crate) chain: Option<String>,
}

/// The choices of a client about the answer.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SendConfiguration {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) accepted_output_modes: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) history_length: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) return_immediately: Option<bool>,
    /// An address to which the changes of the task are told.
    #[serde(default, alias = "pushNotificationConfig", skip_serializing_if = "Option::is_none")]
    pub(crate) task_push_notification_config: Option<PushConfig>,
}

/// The parameters of `GetTask`, `CancelTask` and `SubscribeToTask`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskQuery {
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) history_length: Option<i32>,
}

/// The parameters of `ListTasks`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ListTasks {
    pub(crate) context_id: Option<String>,
    pub(crate) status: Option<TaskState>,
    pub(crate) page_size: Option<i32>,
    pub(crate) page_token: Option<String>,
    pub(crate) history_length: Option<i32>,
    pub(crate) status_timestamp_after: Option<String>,
    pub(crate) include_artifacts: Option<bool>,
}
