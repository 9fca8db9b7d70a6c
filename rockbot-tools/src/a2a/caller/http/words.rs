//! The answers of agents over HTTP as the answers of agents on the bus, whose words they share.

use super::super::super::wire::{
    AgentArtifact, AgentMessage, AgentMessagePart, AgentTaskError, AgentTaskResult, AgentTaskState, codes,
};
use super::super::ends::{self, EndWords};
use super::super::files::{MAX_FILES, received};
use super::super::tasks::PendingTask;
use super::error::{BUSY, PeerError, TASK_NOT_FOUND};
use crate::a2a_wire::{Artifact, Message, Part, PartContent, Task, TaskState, reference};
use rockbot_core::content::MediaPart;
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
    let mut told = Told::up_to(MAX_FILES);
    let result = AgentTaskResult {
        task_id: task.id.clone(),
        context_id: Some(conversation(&remote.id, &remote.context_id)),
        state,
        message: remote.status.message.as_ref().map(|said| told.message(said)),
        artifacts: Some(
            remote
                .artifacts
                .into_iter()
                .flatten()
                .map(|made| told.artifact(made))
                .collect(),
        ),
    };
    let words = ends::of_result(task, &result)?;
    Some(EndWords {
        files: told.files,
        ..words
    })
}

/// Returns the words about an answer without a task.
pub(super) fn of_message(task: &PendingTask, answer: &Message) -> Option<EndWords> {
    let mut told = Told::up_to(MAX_FILES);
    let result = AgentTaskResult {
        task_id: task.id.clone(),
        context_id: None,
        state: AgentTaskState::Completed,
        artifacts: None,
        message: Some(told.message(answer)),
    };
    let words = ends::of_result(task, &result)?;
    Some(EndWords {
        files: told.files,
        ..words
    })
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
    ends::of_status(state, said.map(|said| Told::up_to(0).message(said)).as_ref())
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

/// The parts of an answer as they are told: texts, and up to `max` files.
struct Told {
    files: Vec<MediaPart>,
    max: usize,
}

impl Told {
    fn up_to(max: usize) -> Self {
        Self { files: Vec::new(), max }
    }

    fn message(&mut self, message: &Message) -> AgentMessage {
        AgentMessage {
            role: "agent".to_owned(),
            parts: message.parts.iter().map(|part| self.part(part)).collect(),
        }
    }

    fn artifact(&mut self, artifact: Artifact) -> AgentArtifact {
        AgentArtifact {
            name: artifact.name,
            description: artifact.description,
            parts: artifact.parts.iter().map(|part| self.part(part)).collect(),
        }
    }

    /// Converts a part. A file is named, and its text is read if it is one.
    fn part(&mut self, part: &Part) -> AgentMessagePart {
        let name = part.filename.as_deref();
        let kind = part.media_type.as_deref();
        let is_text = kind.is_some_and(|kind| kind.starts_with("text/") || kind == "application/json");
        let text = match part.content() {
            Ok(PartContent::Text(text)) => text.to_owned(),
            Ok(PartContent::Url(url)) => reference(url, name, kind),
            Ok(PartContent::Raw(bytes)) if is_text => String::from_utf8_lossy(&bytes).into_owned(),
            Ok(PartContent::Raw(bytes)) => self.file(bytes, name, kind),
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

    /// Takes a file, and returns the text that stands for it.
    fn file(&mut self, bytes: Vec<u8>, name: Option<&str>, kind: Option<&str>) -> String {
        let about: Vec<_> = [name, kind].into_iter().flatten().map(one_line).collect();
        let about = format!("file of {} bytes: {}", bytes.len(), about.join(", "));
        if self.files.len() >= self.max {
            return format!("[{about}. It is not kept: ask for it by reference, or as text]");
        }
        self.files.push(received(bytes, name, kind));
        format!("[{about}]")
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
