//! Objects of version 0.3. Messages of clients are converted to version 1.0, and answers are
//! converted from version 1.0.
//!
//! In version 0.3 methods have other names (`message/send`), objects have a member `kind`, states
//! and roles are in lower case, and files are objects of their own.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::message::MessageMetadata;
use super::push::OldPush;
use super::request::SendMetadata;
use super::{Message, Part, Role, SendConfiguration, SendMessage};

/// The methods of 0.3, each with the method of 1.0 that it became.
const METHODS: [(&str, &str); 10] = [
    ("message/send", "SendMessage"),
    ("message/stream", "SendStreamingMessage"),
    ("tasks/get", "GetTask"),
    ("tasks/cancel", "CancelTask"),
    ("tasks/resubscribe", "SubscribeToTask"),
    ("tasks/pushNotificationConfig/set", "CreateTaskPushNotificationConfig"),
    ("tasks/pushNotificationConfig/get", "GetTaskPushNotificationConfig"),
    ("tasks/pushNotificationConfig/list", "ListTaskPushNotificationConfigs"),
    (
        "tasks/pushNotificationConfig/delete",
        "DeleteTaskPushNotificationConfig",
    ),
    ("agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard"),
];

/// Returns the method of 1.0 that a method of 0.3 became.
pub(crate) fn method(name: &str) -> Option<&'static str> {
    METHODS.iter().find(|(old, _)| *old == name).map(|(_, new)| *new)
}

/// Returns the method of 0.3 that became a method of 1.0.
pub(crate) fn old_method(name: &str) -> Option<&'static str> {
    METHODS.iter().find(|(_, new)| *new == name).map(|(old, _)| *old)
}

/// The parameters of `message/send` and `message/stream`.
#[derive(Debug, Deserialize)]
pub(crate) struct OldSend {
    message: OldMessage,
    #[serde(default)]
    configuration: Option<OldConfiguration>,
    #[serde(default)]
    metadata: Option<SendMetadata>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OldMessage {
    message_id: String,
    #[serde(default)]
    context_id: Option<String>,
    #[serde(default)]
    task_id: Option<String>,
    role: OldRole,
    #[serde(deserialize_with = "super::message::bounded_list")]
    parts: Vec<OldPart>,
    #[serde(default)]
    metadata: Option<MessageMetadata>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OldRole {
    User,
    Agent,
}

#[derive(Debug, Deserialize)]
pub(super) struct OldPart {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    file: Option<OldFile>,
    #[serde(default)]
    data: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldFile {
    #[serde(default)]
    bytes: Option<String>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    mime_type: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldConfiguration {
    #[serde(default)]
    accepted_output_modes: Option<Vec<String>>,
    #[serde(default)]
    history_length: Option<i32>,
    #[serde(default)]
    blocking: Option<bool>,
    #[serde(default)]
    push_notification_config: Option<OldPush>,
}

impl From<OldSend> for SendMessage {
    fn from(old: OldSend) -> Self {
        Self {
            message: old.message.into(),
            configuration: old.configuration.map(Into::into),
            metadata: old.metadata,
        }
    }
}

impl From<OldMessage> for Message {
    fn from(old: OldMessage) -> Self {
        Self {
            message_id: old.message_id,
            context_id: old.context_id,
            task_id: old.task_id,
            role: match old.role {
                OldRole::User => Role::User,
                OldRole::Agent => Role::Agent,
            },
            parts: old.parts.into_iter().map(Into::into).collect(),
            metadata: old.metadata,
        }
    }
}

impl From<OldPart> for Part {
    fn from(old: OldPart) -> Self {
        let part = Self {
            text: old.text,
            data: old.data,
            ..Self::default()
        };
        match old.file {
            Some(file) => Self {
                raw: file.bytes,
                url: file.uri,
                filename: file.name,
                media_type: file.mime_type,
                ..part
            },
            None => part,
        }
    }
}

impl From<OldConfiguration> for SendConfiguration {
    fn from(old: OldConfiguration) -> Self {
        Self {
            accepted_output_modes: old.accepted_output_modes,
            history_length: old.history_length,
            return_immediately: old.blocking.map(|is_blocking| !is_blocking),
            task_push_notification_config: old.push_notification_config.map(Into::into),
        }
    }
}

/// Converts the result of an operation, or an item of a stream.
pub(crate) fn result(result: Value) -> Value {
    let Value::Object(mut object) = result else {
        return result;
    };
    let mut taken = |name: &str| object.remove(name);
    if let Some(found) = taken("task") {
        return task(found);
    }
    if let Some(update) = taken("statusUpdate") {
        return status_update(update);
    }
    if let Some(update) = taken("artifactUpdate") {
        return kind(artifact_update(update), "artifact-update");
    }
    task(Value::Object(object))
}

fn task(mut task: Value) -> Value {
    status(&mut task["status"]);
    list(&mut task, "artifacts", artifact);
    list(&mut task, "history", message);
    kind(task, "task")
}

fn status_update(mut update: Value) -> Value {
    let state = update["status"]["state"].as_str().unwrap_or_default();
    // A client of 0.3 reads a stream until an event that is marked as final.
    let is_final = !matches!(
        state,
        "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING" | "TASK_STATE_AUTH_REQUIRED"
    );
    status(&mut update["status"]);
    update["final"] = json!(is_final);
    kind(update, "status-update")
}

fn artifact_update(mut update: Value) -> Value {
    artifact(&mut update["artifact"]);
    update
}

fn status(status: &mut Value) {
    let state = status["state"].as_str().unwrap_or_default();
    let state = state
        .trim_start_matches("TASK_STATE_")
        .to_ascii_lowercase()
        .replace('_', "-");
    status["state"] = json!(state);
    if let Some(said) = status.get_mut("message") {
        message(said);
    }
}

fn artifact(artifact: &mut Value) {
    list(artifact, "parts", part);
}

/// Converts a message of version 1.0.
pub(super) fn message(message: &mut Value) {
    let role = message["role"].as_str().unwrap_or_default();
    message["role"] = json!(role.trim_start_matches("ROLE_").to_ascii_lowercase());
    message["kind"] = json!("message");
    list(message, "parts", part);
}

fn part(part: &mut Value) {
    let Value::Object(object) = part else { return };
    let mut file = Map::new();
    for (old, new) in [
        ("raw", "bytes"),
        ("url", "uri"),
        ("filename", "name"),
        ("mediaType", "mimeType"),
    ] {
        if let Some(value) = object.remove(old) {
            file.insert(new.to_owned(), value);
        }
    }
    let is_file = file.contains_key("bytes") || file.contains_key("uri");
    let name = match object.contains_key("text") {
        true => "text",
        false if is_file => "file",
        false => "data",
    };
    object.insert("kind".to_owned(), json!(name));
    if is_file {
        object.insert("file".to_owned(), Value::Object(file));
    }
}

fn kind(mut object: Value, kind: &str) -> Value {
    object["kind"] = json!(kind);
    object
}

fn list(object: &mut Value, name: &str, convert: impl Fn(&mut Value)) {
    let items = object.get_mut(name).and_then(Value::as_array_mut);
    items.into_iter().flatten().for_each(convert);
}
