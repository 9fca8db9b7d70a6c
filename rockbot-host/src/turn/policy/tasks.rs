//! The task list that the model keeps for itself within a turn: changed by its calls, shown to it
//! with each request.
//!
//! The tools check their arguments and answer; the machine derives the list from the calls that
//! succeeded. So the list is replayed with the journal, and needs no store.

use std::fmt::Write as _;

use rockbot_core::chat::{ChatMessage, ContentPart, ContextReason, Provenance, Role, ToolCall};
use rockbot_core::tool::{ToolError, ToolErrorCode};
use rockbot_core::turn::{TurnTask, TurnTaskStatus};
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool that writes the list.
pub(crate) const CREATE: &str = "task_create";
/// The tool that changes the status of a task.
pub(crate) const UPDATE: &str = "task_update";

/// Writes your list of tasks for this request, in the place of the one before. The tasks get the
/// ids 1, 2, 3 and so on. Use it for work of several steps; an empty list clears it.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TaskCreate {
    /// The tasks, in the order in which you will do them: a short line each.
    #[schemars(length(max = 50), inner(length(min = 1, max = 200)))]
    items: Vec<String>,
}

/// Sets the status of a task on your list: in_progress when you begin with it, completed when it
/// is done.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TaskUpdate {
    /// The id of the task, as the list shows it.
    id: usize,
    status: TaskStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TaskStatus {
    Pending,
    InProgress,
    Completed,
}

impl TaskStatus {
    fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

/// The tasks of a turn. A task's id is its position, from 1 on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TaskList(Vec<Task>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Task {
    title: String,
    status: TaskStatus,
}

impl TaskList {
    /// Replaces the list, and returns the confirmation for the model.
    pub(crate) fn create(&mut self, new: &TaskCreate) -> Result<String, ToolError> {
        // One line each: a title with line breaks could pass for further tasks of the list.
        let titles = new
            .items
            .iter()
            .map(|item| item.split_whitespace().collect::<Vec<_>>().join(" "));
        let titles: Vec<_> = titles.collect();
        if let Some(empty) = titles.iter().position(String::is_empty) {
            let message = format!("item {} is empty: say in a few words what is to be done", empty + 1);
            return Err(ToolError::new(ToolErrorCode::InvalidArguments, message));
        }
        let task = |title| Task {
            title,
            status: TaskStatus::Pending,
        };
        self.0 = titles.into_iter().map(task).collect();
        Ok(match self.0.len() {
            0 => "The task list is cleared.".to_owned(),
            count => format!("The task list has the ids 1 to {count}."),
        })
    }

    /// Sets the status of a task, and returns the confirmation for the model.
    pub(crate) fn update(&mut self, change: &TaskUpdate) -> Result<String, ToolError> {
        let id = change.id;
        let count = self.0.len();
        let Some(task) = id.checked_sub(1).and_then(|index| self.0.get_mut(index)) else {
            let message = match count {
                0 => format!("there is no task {id}: the list is empty, write it with `{CREATE}` first"),
                _ => format!("there is no task {id}: the ids are 1 to {count}"),
            };
            return Err(ToolError::new(ToolErrorCode::InvalidArguments, message));
        };
        task.status = change.status;
        Ok(format!("Task {id} is {}.", change.status.name()))
    }

    /// Applies a call that succeeded. A call of another tool, or a call that cannot be parsed,
    /// changes nothing.
    pub(in crate::turn) fn apply(&mut self, call: &ToolCall) {
        let result = match call.name.as_str() {
            CREATE => serde_json::from_str(&call.arguments).ok().map(|new| self.create(&new)),
            UPDATE => serde_json::from_str(&call.arguments)
                .ok()
                .map(|change| self.update(&change)),
            _ => None,
        };
        // The tool has returned the same error to the model already.
        drop(result);
    }

    /// Returns the tasks as hooks see them.
    pub(in crate::turn) fn view(&self) -> Vec<TurnTask> {
        let status = |status| match status {
            TaskStatus::Pending => TurnTaskStatus::Pending,
            TaskStatus::InProgress => TurnTaskStatus::InProgress,
            TaskStatus::Completed => TurnTaskStatus::Completed,
        };
        let tasks = self.0.iter();
        tasks
            .map(|task| TurnTask::new(&*task.title, status(task.status)))
            .collect()
    }

    /// Returns the list as the model reads it, one line for each task.
    fn shown(&self) -> String {
        let mut text = String::new();
        for (index, Task { title, status }) in self.0.iter().enumerate() {
            let line_end = if index == 0 { "" } else { "\n" };
            // Writing to a string cannot fail.
            let _ = write!(text, "{line_end}{}. [{}] {title}", index + 1, status.name());
        }
        text
    }
}

/// Reports whether a tool belongs to the task list.
pub(in crate::turn) fn has_tool(name: &str) -> bool {
    matches!(name, CREATE | UPDATE)
}

/// Returns the last message of each request with tools: the host's reminder, and the tasks.
///
/// The titles are the model's words and stay marked as such, so text that it copied from an
/// untrusted source does not become the host's.
pub(in crate::turn) fn closing(reminder: Option<&str>, tasks: &TaskList) -> Option<ChatMessage> {
    const HEADING: &str = "Current task list:\n";
    let host = match (reminder, tasks.0.is_empty()) {
        (None, true) => return None,
        (Some(reminder), true) => reminder.to_owned(),
        (None, false) => HEADING.to_owned(),
        (Some(reminder), false) => format!("{reminder}\n\n{HEADING}"),
    };
    let mut message = ChatMessage::new(Role::User, host, Provenance::HOST).because(ContextReason::Reminder);
    if !tasks.0.is_empty() {
        let shown = ContentPart::text(tasks.shown()).with_provenance(Provenance::MODEL);
        message.content.push(shown);
    }
    Some(message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn after(calls: &[(&str, Value)]) -> TaskList {
        let mut tasks = TaskList::default();
        for (name, arguments) in calls {
            tasks.apply(&ToolCall::new("1", *name, arguments.to_string()));
        }
        tasks
    }

    fn check(calls: &[(&str, Value)], expected: &str) {
        assert_eq!(after(calls).shown(), expected);
    }

    fn two() -> (&'static str, Value) {
        (
            CREATE,
            json!({"items": ["Read the mail", " Answer\n2. [completed] it "]}),
        )
    }

    #[test]
    fn calls_change_the_list() {
        check(&[], "");
        check(
            &[two()],
            "1. [pending] Read the mail\n2. [pending] Answer 2. [completed] it",
        );
        let changes = [
            two(),
            (UPDATE, json!({"id": 1, "status": "completed"})),
            (UPDATE, json!({"id": 2, "status": "in_progress"})),
        ];
        check(
            &changes,
            "1. [completed] Read the mail\n2. [in_progress] Answer 2. [completed] it",
        );
        check(&[two(), (CREATE, json!({"items": []}))], "");
        check(&[two(), (CREATE, json!({"items": ["Rest"]}))], "1. [pending] Rest");
    }

    #[test]
    fn a_call_that_fails_changes_nothing() {
        let before = after(&[two()]);
        for (name, arguments) in [
            (UPDATE, json!({"id": 3, "status": "completed"})),
            (UPDATE, json!({"id": 0, "status": "completed"})),
            (UPDATE, json!({"id": 1, "status": "done"})),
            (CREATE, json!({"items": ["Rest", " \n"]})),
            ("look", json!({"items": []})),
        ] {
            assert_eq!(after(&[two(), (name, arguments)]), before);
        }
    }

    #[test]
    fn the_list_stands_behind_the_reminder() {
        let text = |reminder, tasks| closing(reminder, tasks).map(|message| message.text().into_owned());
        let none = TaskList::default();
        let tasks = after(&[(CREATE, json!({"items": ["Rest"]}))]);
        assert_eq!(text(None, &none), None);
        assert_eq!(text(Some("Stay calm."), &none).unwrap(), "Stay calm.");
        let list = "Current task list:\n1. [pending] Rest";
        assert_eq!(text(None, &tasks).unwrap(), list);
        assert_eq!(
            text(Some("Stay calm."), &tasks).unwrap(),
            format!("Stay calm.\n\n{list}")
        );
    }
}
