//! The file of scheduled tasks.

use std::path::Path;

use rockbot_core::files::{DataFolder, FileError};
use rockbot_core::{BoxError, Principal};

use super::task::ScheduledTask;

/// Name of the file, as in the original.
const FILE: &str = "scheduled-tasks.json";

/// Maximum length of the file, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The scheduled tasks of all principals, in a file if the host has a data folder.
#[derive(Debug, Default)]
pub(super) struct TaskStore {
    folder: Option<DataFolder>,
    tasks: Vec<ScheduledTask>,
}

impl TaskStore {
    /// Reads the tasks. A file that cannot be read as such is put aside.
    pub(super) fn open(data: Option<&Path>) -> Result<Self, BoxError> {
        let Some(data) = data else {
            return Ok(Self::default());
        };
        let folder = DataFolder::unheld(data);
        let tasks = match folder.read(FILE, MAX_BYTES)? {
            None => Vec::new(),
            Some(bytes) => match serde_json::from_slice(&bytes) {
                Ok(tasks) => tasks,
                Err(error) => {
                    let aside = folder.quarantine(FILE)?;
                    tracing::error!(%error, aside, "scheduled tasks unreadable; the file is put aside, and no task is left");
                    Vec::new()
                }
            },
        };
        Ok(Self {
            folder: Some(folder),
            tasks,
        })
    }

    /// Returns all tasks.
    pub(super) fn all(&self) -> &[ScheduledTask] {
        &self.tasks
    }

    /// Returns the task of this name, whatever its case.
    pub(super) fn find(&self, principal: &Principal, name: &str) -> Option<&ScheduledTask> {
        self.tasks.iter().find(|task| is_named(task, principal, name))
    }

    /// Adds a task, or replaces the one of its name.
    pub(super) fn put(&mut self, task: ScheduledTask) -> Result<(), FileError> {
        let mut tasks = self.tasks.clone();
        tasks.retain(|other| !is_named(other, &task.principal, &task.name));
        tasks.push(task);
        tasks.sort_by(|a, b| (&a.name, &a.principal).cmp(&(&b.name, &b.principal)));
        self.write(tasks)
    }

    /// Removes a task. Returns `false` if there is none of this name.
    pub(super) fn remove(&mut self, principal: &Principal, name: &str) -> Result<bool, FileError> {
        let mut tasks = self.tasks.clone();
        tasks.retain(|task| !is_named(task, principal, name));
        let is_removed = tasks.len() < self.tasks.len();
        if is_removed {
            self.write(tasks)?;
        }
        Ok(is_removed)
    }

    /// Writes the tasks first: what is in memory is what is on the disk.
    fn write(&mut self, tasks: Vec<ScheduledTask>) -> Result<(), FileError> {
        if let Some(folder) = &self.folder {
            let json = serde_json::to_vec_pretty(&tasks).expect("tasks have no maps with keys that are no text");
            folder.replace(FILE, &json)?;
        }
        self.tasks = tasks;
        Ok(())
    }
}

fn is_named(task: &ScheduledTask, principal: &Principal, name: &str) -> bool {
    task.principal == *principal && task.name.to_lowercase() == name.to_lowercase()
}
