//! The tasks that other agents work on, until their ends are told. The tasks survive a restart.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rockbot_core::content::Content;
use rockbot_core::context::Trust;
use rockbot_core::files::FileError;
use rockbot_core::store::StorePath;
use rockbot_core::trust::Label;
use rockbot_core::{BoxError, Principal, SessionId, Timestamp, TurnId};
use serde::{Deserialize, Serialize};

use super::super::task_file::TaskFile;

/// Name of the file in the data folder.
const FILE: &str = "a2a-tasks.json";

/// Time for which the end of a task is kept for a call that waits for it.
const END_KEPT: Duration = Duration::from_secs(600);

/// Maximum number of tasks of all principals at once.
pub(super) const MAX_TASKS: usize = 256;

/// Maximum number of earlier questions that are remembered.
const MAX_ASKED: usize = 1_000;

/// A task that another agent works on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PendingTask {
    pub(super) id: String,
    pub(super) agent: String,
    pub(super) skill: String,
    /// Id of the conversation with the agent: as the call names it, else the task's own id.
    pub(super) context: String,
    /// Digest of agent, skill and message.
    pub(super) question: String,
    pub(super) principal: Principal,
    pub(super) session: SessionId,
    /// Namespace of the work that asked.
    pub(super) namespace: StorePath,
    pub(super) turn: TurnId,
    /// Number of turns above the turn that asked.
    pub(super) depth: u32,
    pub(super) trust: Trust,
    pub(super) label: Label,
    pub(super) asked_at: Timestamp,
    /// Time after which the agent counts as silent.
    pub(super) deadline: Timestamp,
    /// `true` once the task was sent.
    #[serde(default)]
    pub(super) is_sent: bool,
    /// `true` if the call waits for the end of the task. The end then becomes no message.
    pub(super) is_awaited: bool,
    /// Number of statuses that the user was told.
    #[serde(default)]
    pub(super) statuses: u32,
    /// The task at an agent that is reached over HTTP; `None` for an agent on the bus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) remote: Option<RemoteTask>,
    /// End of the task, for the call that waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<TaskEnd>,
}

/// A task at an agent that is reached over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemoteTask {
    /// URL of the agent, as the directory has it.
    pub(super) url: String,
    /// JSON of the message, until the agent has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    /// The agent's own ids, once it has the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ids: Option<RemoteIds>,
}

/// The ids by which an agent knows a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RemoteIds {
    pub(super) task: String,
    pub(super) context: String,
}

/// The end of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskEnd {
    /// The host's words before the text.
    pub(super) heading: String,
    /// The agent's own words; empty if it said nothing.
    pub(super) text: String,
    /// The host's words after the text.
    pub(super) closing: String,
    /// The files of the answer.
    #[serde(default, skip_serializing_if = "Content::is_empty")]
    pub(super) files: Content,
}

/// The tasks of a host.
#[derive(Debug, Default)]
pub(super) struct PendingTasks {
    file: TaskFile,
    tasks: BTreeMap<String, PendingTask>,
    /// Sessions with their questions of late, oldest first.
    asked: Vec<(SessionId, String)>,
}

impl PendingTasks {
    /// Opens the tasks of a data folder.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read. A file that holds no list of tasks is put
    /// aside.
    pub(super) fn open(data: Option<&Path>) -> Result<Self, BoxError> {
        let (file, tasks) = TaskFile::open::<PendingTask>(data, FILE, "their ends are not told")?;
        Ok(Self {
            file,
            tasks: tasks.into_iter().map(|task| (task.id.clone(), task)).collect(),
            asked: Vec::new(),
        })
    }

    /// Returns a task whose end was not told yet.
    pub(super) fn get(&self, id: &str) -> Option<&PendingTask> {
        self.tasks.get(id)
    }

    /// Returns all tasks whose ends did not come yet, in order of their ids.
    pub(super) fn open_tasks(&self) -> impl Iterator<Item = &PendingTask> {
        self.tasks.values().filter(|task| task.end.is_none())
    }

    /// Returns how often a session has asked a question of late.
    pub(super) fn times_asked(&self, session: &SessionId, question: &str) -> usize {
        let same = self
            .asked
            .iter()
            .filter(|(of, asked)| of == session && asked == question);
        same.count()
    }

    /// Adds a task.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written; the task is not added then.
    pub(super) fn add(&mut self, task: PendingTask) -> Result<(), FileError> {
        let id = task.id.clone();
        let asked = (task.session.clone(), task.question.clone());
        self.tasks.insert(id.clone(), task);
        if let Err(error) = self.save() {
            self.tasks.remove(&id);
            return Err(error);
        }
        self.asked.push(asked);
        if self.asked.len() > MAX_ASKED {
            self.asked.remove(0);
        }
        Ok(())
    }

    /// Notes that a task was sent.
    pub(super) fn sent(&mut self, id: &str) {
        if let Some(task) = self.tasks.get_mut(id) {
            task.is_sent = true;
            self.save_or_log();
        }
    }

    /// Changes the facts of a task at an agent that is reached over HTTP.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub(super) fn change_remote(&mut self, id: &str, change: impl FnOnce(&mut RemoteTask)) -> Result<(), FileError> {
        let Some(remote) = self.tasks.get_mut(id).and_then(|task| task.remote.as_mut()) else {
            return Ok(());
        };
        change(remote);
        self.save()
    }

    /// Removes a task whose end is told, or that is given up.
    pub(super) fn remove(&mut self, id: &str) {
        if self.tasks.remove(id).is_some() {
            self.save_or_log();
        }
    }

    /// Counts a status that the user is told. Returns the number before.
    pub(super) fn count_status(&mut self, id: &str) -> u32 {
        let Some(task) = self.tasks.get_mut(id) else {
            return u32::MAX;
        };
        let before = task.statuses;
        task.statuses = before.saturating_add(1);
        before
    }

    /// Keeps the end of a task for the call that waits for it. The first end counts.
    pub(super) fn end(&mut self, id: &str, end: TaskEnd) {
        if let Some(task) = self.tasks.get_mut(id).filter(|task| task.end.is_none()) {
            task.end = Some(end);
            self.save_or_log();
        }
    }

    /// Removes the ends that no call has fetched in time.
    pub(super) fn purge(&mut self, now: Timestamp) {
        let before = self.tasks.len();
        self.tasks
            .retain(|_, task| task.end.is_none() || now.since(task.deadline) < END_KEPT);
        if self.tasks.len() < before {
            self.save_or_log();
        }
    }

    fn save(&self) -> Result<(), FileError> {
        self.file.replace(self.tasks.values())
    }

    fn save_or_log(&self) {
        // After a restart the end comes once more, as the same message.
        if let Err(error) = self.save() {
            tracing::error!(%error, "tasks of other agents not written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str) -> PendingTask {
        PendingTask {
            id: id.to_owned(),
            agent: "Bob".to_owned(),
            skill: "sell".to_owned(),
            context: id.to_owned(),
            question: "q".to_owned(),
            principal: Principal::default(),
            session: "main".into(),
            namespace: StorePath::new("session/main").unwrap(),
            turn: "turn-1".into(),
            depth: 0,
            trust: Trust::User,
            label: Label::USER,
            asked_at: Timestamp::default(),
            deadline: Timestamp::from_millis(5),
            is_sent: false,
            is_awaited: false,
            statuses: 0,
            remote: None,
            end: None,
        }
    }

    #[test]
    fn tasks_outlive_the_process_and_a_damaged_file_does_not_stop_it() {
        let folder = tempfile::tempdir().unwrap();
        let open = || PendingTasks::open(Some(folder.path())).unwrap();
        let mut tasks = open();
        tasks.add(task("1")).unwrap();
        tasks.add(task("2")).unwrap();
        tasks.remove("1");
        let ids = |tasks: &PendingTasks| tasks.open_tasks().map(|task| task.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&open()), ["2"]);
        assert_eq!(open().get("2"), Some(&task("2")));
        std::fs::write(folder.path().join(FILE), "[{}]").unwrap();
        assert_eq!(ids(&open()), Vec::<String>::new());
    }

    #[test]
    fn the_first_end_counts_and_is_kept_for_a_while() {
        let mut tasks = PendingTasks::default();
        tasks.add(task("1")).unwrap();
        let end = |text: &str| TaskEnd {
            heading: String::new(),
            text: text.to_owned(),
            closing: String::new(),
            files: Content::default(),
        };
        tasks.end("1", end("first"));
        tasks.end("1", end("second"));
        assert_eq!(tasks.get("1").unwrap().end, Some(end("first")));
        assert_eq!(tasks.open_tasks().count(), 0);
        tasks.purge(Timestamp::from_millis(5).after(END_KEPT));
        assert_eq!(tasks.get("1"), None);
    }
}
