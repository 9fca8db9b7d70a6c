//! The tasks of all callers: bounded in memory, and in a file if the host has a data folder.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rockbot_core::files::{DataFolder, FileError, LineFile};
use rockbot_core::{Principal, Timestamp};

use super::record::TaskRecord;
use crate::a2a_wire::{A2aError, ErrorKind, TaskState};

/// Name of the file, below the data folder. Each line is a task as it was after a change; the
/// last line of a task counts.
const FILE: &str = "a2a/tasks.jsonl";

/// Maximum length of a line, in bytes.
const MAX_LINE: u64 = 1 << 20;

/// Maximum number of tasks of all callers.
const MAX_TASKS: usize = 2_000;

/// Maximum number of tasks of a caller that have not ended.
const MAX_OPEN: usize = 64;

/// Maximum growth of the file, in bytes, beyond twice its length after the last rewrite. A larger
/// file is rewritten.
const MAX_WASTE: u64 = 4 << 20;

/// The tasks.
#[derive(Debug, Default)]
pub(in crate::a2a_server) struct TaskTable(Mutex<Tasks>);

#[derive(Debug, Default)]
struct Tasks {
    by_id: HashMap<String, TaskRecord>,
    file: Option<TaskFile>,
}

#[derive(Debug)]
struct TaskFile {
    folder: DataFolder,
    lines: LineFile,
    /// Length of the file after it was written anew last.
    clean: u64,
}

impl TaskTable {
    /// Reads the tasks of the data folder, without the expired tasks.
    pub(in crate::a2a_server) fn open(data: Option<&Path>, now: Timestamp) -> Result<Self, FileError> {
        let mut tasks = Tasks::default();
        if let Some(data) = data {
            let folder = DataFolder::unheld(data);
            let skipped = folder.read_lines(FILE, MAX_LINE, |line| {
                match serde_json::from_slice::<TaskRecord>(line) {
                    Ok(record) => _ = tasks.by_id.insert(record.id.clone(), record),
                    Err(error) => {
                        tracing::warn!(%error, "a line of {FILE} is not read; its task is not known any more")
                    }
                }
            })?;
            if skipped.is_some_and(|skipped| skipped > 0) {
                tracing::warn!(
                    ?skipped,
                    "lines of {FILE} are too long; their tasks are not known any more"
                );
            }
            tasks.by_id.retain(|_, record| !record.is_expired(now));
            tasks.file = Some(TaskFile {
                lines: folder.lines(FILE)?,
                folder,
                clean: 0,
            });
            tasks.rewrite()?;
        }
        Ok(Self(Mutex::new(tasks)))
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        // Each change of the map is one step, so a poisoned map is consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a task, or returns the task that has its id already. `true` if the task is new.
    ///
    /// # Errors
    ///
    /// Returns an error if there are too many tasks, or the file cannot be written.
    pub(in crate::a2a_server) fn add(
        &self,
        record: TaskRecord,
        now: Timestamp,
    ) -> Result<(TaskRecord, bool), A2aError> {
        let mut tasks = self.lock();
        if let Some(known) = tasks.by_id.get(&record.id) {
            return Ok((known.clone(), false));
        }
        tasks.by_id.retain(|_, record| !record.is_expired(now));
        tasks.make_room(&record.principal)?;
        tasks.put(record.clone())?;
        Ok((record, true))
    }

    /// Returns the task of a caller.
    pub(in crate::a2a_server) fn find(&self, principal: &Principal, id: &str) -> Result<TaskRecord, A2aError> {
        let tasks = self.lock();
        let found = tasks.by_id.get(id).filter(|record| record.principal == *principal);
        found.cloned().ok_or_else(A2aError::no_task)
    }

    /// Returns a task of any caller.
    pub(in crate::a2a_server) fn find_any(&self, id: &str) -> Option<TaskRecord> {
        self.lock().by_id.get(id).cloned()
    }

    /// Changes a task, if it is there, and returns it.
    ///
    /// # Errors
    ///
    /// Returns an error if the task is gone, or the file cannot be written.
    pub(in crate::a2a_server) fn change(
        &self,
        id: &str,
        change: impl FnOnce(&mut TaskRecord),
    ) -> Result<TaskRecord, A2aError> {
        let mut tasks = self.lock();
        let mut record = tasks.by_id.get(id).cloned().ok_or_else(A2aError::no_task)?;
        change(&mut record);
        tasks.put(record.clone())?;
        Ok(record)
    }

    /// Notes the state of a task, unless it is known.
    pub(in crate::a2a_server) fn note(&self, id: &str, state: TaskState, now: Timestamp) {
        let mut tasks = self.lock();
        let Some(record) = tasks.by_id.get(id).filter(|record| record.state != state) else {
            return;
        };
        let mut record = record.clone();
        (record.state, record.updated) = (state, now);
        if let Err(error) = tasks.put(record) {
            // The journal of turns knows the end, too.
            tracing::warn!(%error, "the state of an A2A task is not written");
        }
    }

    /// Forgets a task whose turns are not known any more.
    pub(in crate::a2a_server) fn forget(&self, id: &str) {
        self.lock().by_id.remove(id);
    }

    /// Returns the tasks that `takes` accepts, the most recently changed task first.
    pub(in crate::a2a_server) fn all(&self, takes: impl Fn(&TaskRecord) -> bool) -> Vec<TaskRecord> {
        let mut found: Vec<_> = self
            .lock()
            .by_id
            .values()
            .filter(|record| takes(record))
            .cloned()
            .collect();
        found.sort_by(|a, b| (b.updated, &b.id).cmp(&(a.updated, &a.id)));
        found
    }
}

impl Tasks {
    /// Makes room for one more task of a caller: the caller with the most tasks gives up its oldest
    /// ended task.
    fn make_room(&mut self, principal: &Principal) -> Result<(), A2aError> {
        let of_caller = self.by_id.values().filter(|record| record.principal == *principal);
        let open = of_caller.filter(|record| !record.state.is_terminal()).count();
        if open >= MAX_OPEN {
            return Err(A2aError::new(
                ErrorKind::Busy,
                format!("{open} tasks of yours have not ended: wait for one, or cancel it"),
            ));
        }
        if self.by_id.len() < MAX_TASKS {
            return Ok(());
        }
        let mut counts: HashMap<&Principal, usize> = HashMap::new();
        for record in self.by_id.values() {
            *counts.entry(&record.principal).or_default() += 1;
        }
        let ended = self.by_id.values().filter(|record| record.state.is_terminal());
        let oldest = ended.max_by_key(|record| (counts[&record.principal], std::cmp::Reverse(record.updated)));
        match oldest.map(|record| record.id.clone()) {
            Some(id) => _ = self.by_id.remove(&id),
            None => {
                return Err(A2aError::new(
                    ErrorKind::Busy,
                    "too many tasks have not ended: try again later",
                ));
            }
        }
        Ok(())
    }

    /// Keeps a task, in the file first.
    fn put(&mut self, record: TaskRecord) -> Result<(), A2aError> {
        if let Some(file) = &mut self.file {
            let written = file.lines.append(&line(&record));
            written.map_err(|error| unwritten(&error))?;
        }
        self.by_id.insert(record.id.clone(), record);
        let is_wasteful = |file: &TaskFile| file.lines.len() > 2 * file.clean + MAX_WASTE;
        if self.file.as_ref().is_some_and(is_wasteful) {
            self.rewrite().map_err(|error| unwritten(&error))?;
        }
        Ok(())
    }

    /// Writes the file anew, with each task once.
    fn rewrite(&mut self) -> Result<(), FileError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let lines: Vec<u8> = self.by_id.values().flat_map(line).collect();
        file.folder.replace(FILE, &lines)?;
        file.lines = file.folder.lines(FILE)?;
        file.clean = file.lines.len();
        Ok(())
    }
}

fn line(record: &TaskRecord) -> Vec<u8> {
    let mut line = serde_json::to_vec(record).expect("a task has no maps with keys that are no text");
    line.push(b'\n');
    line
}

fn unwritten(error: &FileError) -> A2aError {
    tracing::error!(%error, "{FILE} cannot be written; the request is refused");
    A2aError::new(ErrorKind::Internal, "the task cannot be kept: try again later")
}
