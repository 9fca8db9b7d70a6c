//! The client's side of version 0.3: requests are converted from version 1.0, and answers to it.

use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::message::bounded_list;
use super::v03::{OldMessage, OldPart, message};
use super::{Artifact, ArtifactUpdate, StatusUpdate, StreamItem, Task, TaskState, TaskStatus};

/// Converts the parameters of an operation.
pub(crate) fn params(mut params: Value) -> Value {
    if let Some(sent) = params.get_mut("message") {
        message(sent);
    }
    if let Some(Value::Object(wanted)) = params.get_mut("configuration")
        && let Some(Value::Bool(is_immediate)) = wanted.remove("returnImmediately")
    {
        wanted.insert("blocking".to_owned(), json!(!is_immediate));
    }
    params
}

/// Reads the result of an operation, or an item of a stream. The member `kind` says what it is.
pub(crate) fn item(json: &str) -> Result<StreamItem, serde_json::Error> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(default)]
        kind: String,
    }
    let kind: Kind = serde_json::from_str(json)?;
    Ok(match &*kind.kind {
        "message" => StreamItem::Message(serde_json::from_str::<OldMessage>(json)?.into()),
        "status-update" => StreamItem::StatusUpdate(serde_json::from_str::<OldStatusUpdate>(json)?.into()),
        "artifact-update" => StreamItem::ArtifactUpdate(serde_json::from_str::<OldArtifactUpdate>(json)?.into()),
        _ => StreamItem::Task(serde_json::from_str::<OldTask>(json)?.into()),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldTask {
    id: String,
    #[serde(default)]
    context_id: String,
    status: OldStatus,
    #[serde(default, deserialize_with = "bounded_list")]
    artifacts: Vec<OldArtifact>,
}

#[derive(Deserialize)]
struct OldStatus {
    #[serde(deserialize_with = "state")]
    state: TaskState,
    #[serde(default)]
    message: Option<OldMessage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldArtifact {
    #[serde(default)]
    artifact_id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default, deserialize_with = "bounded_list")]
    parts: Vec<OldPart>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldStatusUpdate {
    #[serde(default)]
    task_id: String,
    #[serde(default)]
    context_id: String,
    status: OldStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldArtifactUpdate {
    #[serde(default)]
    task_id: String,
    #[serde(default)]
    context_id: String,
    artifact: OldArtifact,
    #[serde(default)]
    append: bool,
    #[serde(default)]
    last_chunk: bool,
}

impl From<OldTask> for Task {
    fn from(old: OldTask) -> Self {
        Self {
            id: old.id,
            context_id: old.context_id,
            status: old.status.into(),
            artifacts: Some(old.artifacts.into_iter().map(Into::into).collect()),
            history: Vec::new(),
        }
    }
}

impl From<OldStatus> for TaskStatus {
    fn from(old: OldStatus) -> Self {
        Self {
            state: old.state,
            message: old.message.map(Into::into),
            timestamp: Default::default(),
        }
    }
}

impl From<OldArtifact> for Artifact {
    fn from(old: OldArtifact) -> Self {
        Self {
            artifact_id: old.artifact_id,
            name: old.name,
            description: old.description,
            parts: old.parts.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<OldStatusUpdate> for StatusUpdate {
    fn from(old: OldStatusUpdate) -> Self {
        Self {
            task_id: old.task_id,
            context_id: old.context_id,
            status: old.status.into(),
        }
    }
}

impl From<OldArtifactUpdate> for ArtifactUpdate {
    fn from(old: OldArtifactUpdate) -> Self {
        Self {
            task_id: old.task_id,
            context_id: old.context_id,
            artifact: old.artifact.into(),
            append: old.append,
            last_chunk: old.last_chunk,
        }
    }
}

/// Reads a state, which version 1.0 writes in capitals with a prefix.
fn state<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TaskState, D::Error> {
    let old = String::deserialize(deserializer)?;
    let new = match &*old {
        "unknown" => "TASK_STATE_UNSPECIFIED".to_owned(),
        old => format!("TASK_STATE_{}", old.to_ascii_uppercase().replace('-', "_")),
    };
    serde_json::from_value(Value::from(new)).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use rockbot_core::testing::Mutations;

    use super::*;

    const TASK: &str = r#"{"kind": "task", "id": "t", "contextId": "c", "status": {"state": "input-required", "timestamp": "2026",
        "message": {"kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "a"}]}},
        "artifacts": [{"artifactId": "a", "name": "n", "parts": [{"kind": "file", "file": {"uri": "https://a/", "name": "f"}}]}],
        "history": [], "metadata": {"a": [1]}}"#;
    const UPDATE: &str =
        r#"{"kind": "status-update", "taskId": "t", "contextId": "c", "status": {"state": "working"}, "final": false}"#;
    const NEW: &str =
        r#"{"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}, "artifacts": null}}"#;

    #[test]
    fn answers_are_read_as_of_version_1_0() {
        let StreamItem::Task(task) = item(TASK).unwrap() else {
            panic!("it is a task");
        };
        assert_eq!((&*task.id, task.status.state), ("t", TaskState::InputRequired));
        let artifacts = task.artifacts.unwrap();
        assert_eq!(artifacts[0].parts[0].url.as_deref(), Some("https://a/"));
        let StreamItem::StatusUpdate(update) = item(UPDATE).unwrap() else {
            panic!("it is a status");
        };
        assert_eq!(update.status.state, TaskState::Working);
        assert!(item(r#"{"kind": "task", "id": "t", "status": {"state": "odd"}}"#).is_err());
    }

    #[test]
    fn requests_are_written_as_of_version_0_3() {
        let new = json!({
            "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "a"}]},
            "configuration": {"returnImmediately": true, "historyLength": 0},
        });
        let expected = json!({
            "message": {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "a"}]},
            "configuration": {"blocking": false, "historyLength": 0},
        });
        assert_eq!(params(new), expected);
    }

    #[test]
    fn broken_answers_are_read_to_an_end() {
        Mutations::of([TASK, UPDATE, NEW]).check(|answer| {
            let Ok(text) = std::str::from_utf8(answer) else { return };
            let _ = (item(text), serde_json::from_str::<StreamItem>(text));
        });
    }
}
