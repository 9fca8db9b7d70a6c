//! The tasks of other agents that this host works on, until they are answered. The tasks survive
//! a restart.

use std::collections::BTreeMap;
use std::path::Path;

use rockbot_core::files::FileError;
use rockbot_core::{BoxError, Digest, Principal, SessionId, Timestamp, TurnId};
use serde::{Deserialize, Serialize};

use super::super::task_file::TaskFile;

/// Name of the file in the data folder.
const FILE: &str = "a2a-inbound.json";

/// A task of another agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InboundTask {
    pub(super) task: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) context: Option<String>,
    pub(super) caller: String,
    pub(super) skill: String,
    /// Topic of the answer.
    pub(super) reply_to: String,
    pub(super) correlation: String,
    /// Agents through which the task came; the caller is the last.
    pub(super) chain: Vec<String>,
    pub(super) turn: TurnId,
    pub(super) at: Timestamp,
}

/// The tasks by caller and id.
#[derive(Debug, Default)]
pub(super) struct InboundTasks {
    file: TaskFile,
    tasks: BTreeMap<(String, String), InboundTask>,
}

impl InboundTask {
    /// Returns the principal on whose behalf the task runs: the calling agent, whatever principal
    /// it claims.
    pub(super) fn principal(&self) -> Principal {
        principal_of(&self.caller)
    }

    /// Returns the session of the task: the session of its conversation, if the caller named one.
    pub(super) fn session(&self) -> SessionId {
        session_of(&self.task, self.context.as_deref())
    }
}

/// Returns the principal of a calling agent. Names differ by more than their case.
pub(super) fn principal_of(caller: &str) -> Principal {
    format!("agent:{}", caller.to_ascii_lowercase()).into()
}

/// Returns the session of a task.
pub(super) fn session_of(task: &str, context: Option<&str>) -> SessionId {
    format!("a2a-inbound/{}", context.unwrap_or(task)).into()
}

impl InboundTasks {
    /// Opens the tasks of a data folder.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read. A file that holds no list of tasks is put
    /// aside.
    pub(super) fn open(data: Option<&Path>) -> Result<Self, BoxError> {
        let (file, tasks) = TaskFile::open::<InboundTask>(data, FILE, "they are not answered")?;
        let tasks = tasks.into_iter();
        Ok(Self {
            file,
            tasks: tasks.map(|task| (key(&task.caller, &task.task), task)).collect(),
        })
    }

    /// Returns all tasks.
    pub(super) fn all(&self) -> impl Iterator<Item = &InboundTask> {
        self.tasks.values()
    }

    /// Returns the task of a caller.
    pub(super) fn get(&self, caller: &str, task: &str) -> Option<&InboundTask> {
        self.tasks.get(&key(caller, task))
    }

    /// Returns the number of all tasks, and the number of a caller's tasks.
    pub(super) fn counts(&self, caller: &str) -> (usize, usize) {
        let of_caller = self.all().filter(|task| task.caller.eq_ignore_ascii_case(caller));
        (self.tasks.len(), of_caller.count())
    }

    /// Adds a task.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written; the task is not added then.
    pub(super) fn add(&mut self, task: InboundTask) -> Result<(), FileError> {
        let key = key(&task.caller, &task.task);
        self.tasks.insert(key.clone(), task);
        let saved = self.save();
        if saved.is_err() {
            self.tasks.remove(&key);
        }
        saved
    }

    /// Removes an answered task.
    pub(super) fn remove(&mut self, task: &InboundTask) {
        self.tasks.remove(&key(&task.caller, &task.task));
        // After a restart the answer is sent once more, under the same id.
        if let Err(error) = self.save() {
            tracing::error!(%error, "tasks of other agents not written");
        }
    }

    fn save(&self) -> Result<(), FileError> {
        self.file.replace(self.tasks.values())
    }
}

/// Returns the id of the message that answers a task. It follows from the task, so that receivers
/// deduplicate an answer that is sent twice.
pub(super) fn answer_id(task: &InboundTask) -> String {
    format!("{}.answer", Digest::of([&*task.caller, &*task.task]).short())
}

fn key(caller: &str, task: &str) -> (String, String) {
    (caller.to_ascii_lowercase(), task.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_outlive_the_process_and_a_damaged_file_does_not_stop_it() {
        let folder = tempfile::tempdir().unwrap();
        let task = InboundTask {
            task: "t1".to_owned(),
            context: None,
            caller: "Planner".to_owned(),
            skill: "s".to_owned(),
            reply_to: "agent.response.Planner".to_owned(),
            correlation: "t1".to_owned(),
            chain: vec!["Planner".to_owned()],
            turn: "turn-1".into(),
            at: Timestamp::from_millis(1),
        };
        let open = || InboundTasks::open(Some(folder.path())).unwrap();
        open().add(task.clone()).unwrap();
        let mut tasks = open();
        assert_eq!(tasks.get("planner", "t1"), Some(&task));
        assert_eq!((tasks.counts("PLANNER"), tasks.counts("other")), ((1, 1), (1, 0)));
        assert_eq!(task.principal().as_str(), "agent:planner");
        assert_eq!(task.session().as_str(), "a2a-inbound/t1");
        tasks.remove(&task);
        assert_eq!(open().all().count(), 0);
        std::fs::write(folder.path().join(FILE), "7").unwrap();
        assert_eq!(open().all().count(), 0);
    }
}
