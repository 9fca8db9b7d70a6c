//! The parameters of the operations.

use serde::Deserialize;

use super::{Message, TaskState};

/// The parameters of `SendMessage` and `SendStreamingMessage`.
#[derive(Debug, Deserialize)]
pub(in crate::a2a_server) struct SendMessage {
    pub(in crate::a2a_server) message: Message,
    #[serde(default)]
    pub(in crate::a2a_server) configuration: Option<SendConfiguration>,
    #[serde(default)]
    pub(in crate::a2a_server) metadata: Option<SendMetadata>,
}

/// The metadata of a request that have a meaning here: the original names the skill here, and not
/// in the message.
#[derive(Debug, Default, Deserialize)]
pub(in crate::a2a_server) struct SendMetadata {
    #[serde(default)]
    pub(in crate::a2a_server) skill: Option<String>,
}

/// The choices of a client about the answer.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::a2a_server) struct SendConfiguration {
    #[serde(default)]
    pub(in crate::a2a_server) accepted_output_modes: Option<Vec<String>>,
    #[serde(default)]
    pub(in crate::a2a_server) history_length: Option<i32>,
    #[serde(default)]
    pub(in crate::a2a_server) return_immediately: Option<bool>,
    /// Present if the client asks for push notifications, which this server does not send. The
    /// value is not read.
    #[serde(default, alias = "pushNotificationConfig")]
    pub(in crate::a2a_server) task_push_notification_config: Option<serde::de::IgnoredAny>,
}

/// The parameters of `GetTask`, `CancelTask` and `SubscribeToTask`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::a2a_server) struct TaskQuery {
    pub(in crate::a2a_server) id: String,
    #[serde(default)]
    pub(in crate::a2a_server) history_length: Option<i32>,
}

/// The parameters of `ListTasks`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::a2a_server) struct ListTasks {
    pub(in crate::a2a_server) context_id: Option<String>,
    pub(in crate::a2a_server) status: Option<TaskState>,
    pub(in crate::a2a_server) page_size: Option<i32>,
    pub(in crate::a2a_server) page_token: Option<String>,
    pub(in crate::a2a_server) history_length: Option<i32>,
    pub(in crate::a2a_server) status_timestamp_after: Option<String>,
    pub(in crate::a2a_server) include_artifacts: Option<bool>,
}
