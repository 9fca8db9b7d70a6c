//! The answers of agents over HTTP as the answers of agents on the bus, whose words they share.

use super::super::super::wire::{
    AgentArtifact, AgentMessage, AgentMessagePart, AgentTaskError, AgentTaskResult, AgentTaskState, codes,
};
use super::super::ends::{self, EndWords};
use super::super::tasks::PendingTask;
use super::error::{BUSY, PeerError, TASK_NOT_FOUND};
use crate::a2a_wire::{Artifact, Message, Part, PartContent, Task, TaskState, reference};
use rockbot_core::support::one_line;

/// Returns the words about a task that has ended or asks something; `None` if it goes on.
pub(super) fn of_task(task: &PendingTask, remote: Task) -> Option<EndWords> {
    let state = match remote.status.state {
        TaskState::Completed => AgentTaskState::Completed,
        TaskState::Failed | TaskState::Rejected => AgentTaskState::Failed,
        TaskState::Canceled => AgentTaskState::Canceled,
        TaskState::InputRequired => AgentTaskState::InputRequired,
        // The agent waits for a person of its own.
        TaskState::AuthRequired | TaskState::Submitted | TaskState::Working | TaskState::Unspecified => return None,
    };
    let result = AgentTaskResult {
        task_id: task.id.clone(),
        context_id: Some(conversation(&remote.id, &remote.context_id)),
        state,
        artifacts: Some(remote.artifacts.into_iter().flatten().map(artifact).collect()),
        message: remote.status.message.as_ref().map(message),
    };
    ends::of_result(task, &result)
}

/// Returns the words about an answer without a task.
pub(super) fn of_message(task: &PendingTask, answer: &Message) -> Option<EndWords> {
    let result = AgentTaskResult {
        task_id: task.id.clone(),
        context_id: None,
        state: AgentTaskState::Completed,
        artifacts: None,
        message: Some(message(answer)),
    };
    ends::of_result(task, &result)
}

/// Returns the words about a failure.
pub(super) fn of_error(task: &PendingTask, error: &PeerError) -> EndWords {
    match error {
        PeerError::Refused { code, message } => {
            let code_name = match *code {
                TASK_NOT_FOUND => codes::TASK_NOT_FOUND,
                BUSY | -32_603 => codes::EXECUTION_FAILED,
                _ => codes::INVALID_REQUEST,
            };
            let error = AgentTaskError {
                task_id: task.id.clone(),
                context_id: None,
                code: code_name.to_owned(),
                message: message.clone(),
                is_retryable: *code == BUSY,
            };
            ends::of_error(task, &error)
        }
        error => ends::of_failure(task, &error.words()),
    }
}

/// Returns the words of a status.
pub(super) fn of_status(state: TaskState, said: Option<&Message>) -> String {
    let state = match state {
        TaskState::Submitted => AgentTaskState::Submitted,
        TaskState::AuthRequired | TaskState::InputRequired => AgentTaskState::InputRequired,
        _ => AgentTaskState::Working,
    };
    ends::of_status(state, said.map(message).as_ref())
}

/// Returns the id of a conversation, by which a model answers the question of a task.
pub(super) fn conversation(task: &str, context: &str) -> String {
    format!("{task}/{context}")
}

/// Returns the ids of task and context in the id of a conversation.
pub(super) fn parts_of(conversation: &str) -> (Option<String>, Option<String>) {
    let given = |id: &str| Some(id.to_owned()).filter(|id| !id.is_empty());
    match conversation.split_once('/') {
        Some((task, context)) => (given(task), given(context)),
        None => (None, given(conversation)),
    }
}

fn message(message: &Message) -> AgentMessage {
    AgentMessage {
        role: "agent".to_owned(),
        parts: message.parts.iter().map(part).collect(),
    }
}

fn artifact(artifact: Artifact) -> AgentArtifact {
    AgentArtifact {
        name: artifact.name,
        description: artifact.description,
        parts: artifact.parts.iter().map(part).collect(),
    }
}

/// Converts a part. A file is named, and its text is read if it is one.
fn part(part: &Part) -> AgentMessagePart {
    let name = part.filename.as_deref();
    let kind = part.media_type.as_deref();
    let is_text = kind.is_some_and(|kind| kind.starts_with("text/") || kind == "application/json");
    let text = match part.content() {
        Ok(PartContent::Text(text)) => text.to_owned(),
        Ok(PartContent::Url(url)) => reference(url, name, kind),
        Ok(PartContent::Raw(bytes)) if is_text => String::from_utf8_lossy(&bytes).into_owned(),
        Ok(PartContent::Raw(bytes)) => {
            let about: Vec<_> = [name, kind].into_iter().flatten().map(one_line).collect();
            format!(
                "[file of {} bytes: {}. It is not kept: ask for it by reference, or as text]",
                bytes.len(),
                about.join(", ")
            )
        }
        Ok(PartContent::Data(json)) => return data(json.to_owned()),
        Err(_) => String::new(),
    };
    AgentMessagePart {
        kind: "text".to_owned(),
        text: Some(text),
        data: None,
        mime_type: None,
    }
}

fn data(json: String) -> AgentMessagePart {
    AgentMessagePart {
        kind: "data".to_owned(),
        text: None,
        data: Some(json.into()),
        mime_type: None,
    }
}
