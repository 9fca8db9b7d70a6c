//! The file of scheduled tasks, which people and other processes edit, too.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rockbot_core::files::{DataFolder, FileError, FileLock};
use rockbot_core::{BoxError, Principal, Timestamp};
use tokio::time::{Instant, sleep};

use super::task::ScheduledTask;

/// Name of the file, as in the original.
const FILE: &str = "scheduled-tasks.json";

/// Name of the file whose lock a process holds while it changes the tasks.
const LOCK: &str = "scheduled-tasks.lock";

/// Maximum length of the file, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Pause between two attempts to take the lock, and the time after which the change fails.
const LOCK_PAUSE: Duration = Duration::from_millis(20);
const MAX_LOCK_WAIT: Duration = Duration::from_secs(5);

/// Time and length of the file.
type Version = (Option<SystemTime>, u64);

/// The scheduled tasks of all principals, in a file if the host has a data folder.
#[derive(Debug, Default)]
pub(super) struct TaskStore {
    folder: Option<DataFolder>,
    /// The tasks, as the file had them when it could be read last.
    tasks: Vec<ScheduledTask>,
    /// The version of the file that was read or written last.
    seen: Option<Version>,
    /// `true` if that version cannot be read.
    is_damaged: bool,
}

/// A change of the tasks, from their latest state on. No other process changes them meanwhile.
#[derive(Debug)]
pub(super) struct Change<'a> {
    store: &'a mut TaskStore,
    tasks: Vec<ScheduledTask>,
    is_changed: bool,
    // The system releases it when the process dies.
    _lock: Option<FileLock>,
}

impl TaskStore {
    /// Reads the tasks. A file that cannot be read as such is put aside.
    pub(super) fn open(data: Option<&Path>) -> Result<Self, BoxError> {
        let mut store = Self {
            folder: data.map(DataFolder::unheld),
            ..Self::default()
        };
        store.read()?;
        if let Some(folder) = store.folder.as_ref().filter(|_| store.is_damaged) {
            let aside = folder.quarantine(FILE)?;
            tracing::error!(
                aside,
                "scheduled tasks unreadable; the file is put aside, and no task is left"
            );
            (store.is_damaged, store.seen) = (false, None);
        }
        Ok(store)
    }

    /// Returns all tasks, as they were read last.
    pub(super) fn all(&self) -> &[ScheduledTask] {
        &self.tasks
    }

    /// Returns all tasks, to compute their next times.
    pub(super) fn all_mut(&mut self) -> &mut [ScheduledTask] {
        &mut self.tasks
    }

    /// Returns `true` if the file has changed since it was read or written last.
    pub(super) fn is_stale(&self) -> bool {
        match self.version() {
            Ok(version) => version != self.seen,
            // A change reports the error.
            Err(_) => false,
        }
    }

    /// Begins a change: takes the lock and reads the file again if it was edited.
    ///
    /// # Errors
    ///
    /// Returns an error if another process holds the lock for five seconds, or the file cannot be
    /// looked at.
    pub(super) async fn change(&mut self, now: Timestamp) -> Result<Change<'_>, FileError> {
        let lock = match &self.folder {
            Some(folder) => Some(locked(&folder.path().join(LOCK)).await?),
            None => None,
        };
        if self.version()? != self.seen {
            let before = self.tasks.clone();
            self.read()?;
            tracing::info!(tasks = self.tasks.len(), "scheduled tasks read again");
            compare(&before, &mut self.tasks);
        }
        let mut tasks = self.tasks.clone();
        let is_changed = begin_new(&mut tasks, now);
        Ok(Change {
            store: self,
            tasks,
            is_changed,
            _lock: lock,
        })
    }

    fn version(&self) -> Result<Option<Version>, FileError> {
        let Some(folder) = &self.folder else { return Ok(None) };
        Ok(folder.find(FILE)?.map(|entry| (entry.modified, entry.len)))
    }

    /// Reads the file. The tasks stay as they are if it cannot be read as such.
    fn read(&mut self) -> Result<(), FileError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        // Looked at first: an edit meanwhile is another version.
        let seen = self.version()?;
        let read = folder.read(FILE, MAX_BYTES)?;
        let parsed = read.map_or(Ok(Vec::new()), |bytes| serde_json::from_slice(&bytes));
        (self.seen, self.is_damaged) = (seen, parsed.is_err());
        match parsed {
            Ok(tasks) => self.tasks = tasks,
            Err(error) => tracing::error!(
                %error,
                "scheduled-tasks.json is not read; the tasks stay as they were before: repair the file"
            ),
        }
        Ok(())
    }

    fn write(&mut self, tasks: Vec<ScheduledTask>) -> Result<(), FileError> {
        if let Some(folder) = &self.folder {
            if self.is_damaged {
                let aside = folder.quarantine_copy(FILE)?;
                tracing::error!(
                    aside,
                    "scheduled-tasks.json is written anew; what could not be read is put aside"
                );
            }
            let json = serde_json::to_vec_pretty(&tasks).expect("tasks have no maps with keys that are no text");
            folder.replace(FILE, &json)?;
        }
        (self.tasks, self.seen, self.is_damaged) = (tasks, self.version()?, false);
        Ok(())
    }
}

impl Change<'_> {
    /// Returns all tasks.
    pub(super) fn all(&self) -> &[ScheduledTask] {
        &self.tasks
    }

    /// Returns the task of this name, whatever its case.
    pub(super) fn find(&self, principal: &Principal, name: &str) -> Option<&ScheduledTask> {
        self.tasks.iter().find(|task| task.is_named(principal, name))
    }

    /// Adds a task, or replaces the task of its name.
    pub(super) fn put(&mut self, task: ScheduledTask) {
        self.remove(&task.principal, &task.name);
        self.tasks.push(ScheduledTask { armed: None, ..task });
        self.is_changed = true;
    }

    /// Replaces the task at a place by another state of it, which is written if it is a change.
    pub(super) fn set(&mut self, index: usize, task: ScheduledTask, is_change: bool) {
        if let Some(place) = self.tasks.get_mut(index) {
            *place = task;
            self.is_changed |= is_change;
        }
    }

    /// Removes a task. Returns `false` if there is none of this name.
    pub(super) fn remove(&mut self, principal: &Principal, name: &str) -> bool {
        let before = self.tasks.len();
        self.tasks.retain(|task| !task.is_named(principal, name));
        let is_removed = self.tasks.len() < before;
        self.is_changed |= is_removed;
        is_removed
    }

    /// Writes the tasks, the file first: the tasks in memory are the tasks on the disk.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written. The tasks stay as they were.
    pub(super) fn commit(mut self) -> Result<(), FileError> {
        if !self.is_changed {
            self.store.tasks = self.tasks;
            return Ok(());
        }
        self.tasks
            .sort_by(|a, b| (&a.name, &a.principal).cmp(&(&b.name, &b.principal)));
        self.store.write(self.tasks)
    }
}

/// Takes the lock, after other processes.
async fn locked(path: &Path) -> Result<FileLock, FileError> {
    let begun = Instant::now();
    loop {
        match FileLock::take(path) {
            Err(FileError::Locked(_)) if begun.elapsed() < MAX_LOCK_WAIT => sleep(LOCK_PAUSE).await,
            taken => return taken,
        }
    }
}

/// Takes over the known state of the tasks `before`: the next times of unchanged tasks. Tasks
/// whose times were edited by hand lose their beginning: times of the new expression before now
/// are not missed.
fn compare(before: &[ScheduledTask], tasks: &mut [ScheduledTask]) {
    let key = |task: &ScheduledTask| (task.principal.clone(), task.name.clone(), task.created_at);
    let before: HashMap<_, _> = before.iter().map(|task| (key(task), task)).collect();
    for task in tasks {
        match before.get(&key(task)) {
            Some(old) if old.cron_expression != task.cron_expression => task.created_at = Timestamp::default(),
            Some(old) if old.has_next_of(task) => task.armed.clone_from(&old.armed),
            _ => {}
        }
    }
}

/// Sets the beginning of tasks that have none.
fn begin_new(tasks: &mut [ScheduledTask], now: Timestamp) -> bool {
    let new = tasks.iter_mut().filter(|task| task.created_at == Timestamp::default());
    let count = new.map(|task| (task.created_at, task.armed) = (now, None)).count();
    count > 0
}
