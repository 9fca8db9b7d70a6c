//! The file of scheduled tasks, which people and other processes edit, too, or the document that
//! processes share.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rockbot_core::files::{DataFolder, FileError, FileLock};
use rockbot_core::store::{SharedDocuments, StoreError, StoreErrorKind};
use rockbot_core::subsystem::Parts;
use rockbot_core::{BoxError, Principal, Timestamp};
use tokio::time::{Instant, sleep};

use super::error::ScheduleError;
use super::shared::{SharedLock, SharedTasks};
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

/// The place where the tasks are kept.
#[derive(Debug, Default)]
enum Place {
    #[default]
    Memory,
    File(Arc<DataFolder>),
    Shared(SharedTasks),
}

/// The version of the tasks: time and length of the file, or the number of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    File(Option<SystemTime>, u64),
    Shared(u64),
}

/// The right to change the tasks, which other processes do not have meanwhile.
#[derive(Debug)]
enum Lock {
    Memory,
    // The system releases it when the process dies.
    File { _lock: FileLock },
    Shared(SharedLock),
}

/// The scheduled tasks of all principals: in a document that processes share if the host has such
/// documents, else in a file if it has a data folder.
#[derive(Debug, Default)]
pub(super) struct TaskStore {
    place: Place,
    /// The tasks, as they could be read last.
    tasks: Vec<ScheduledTask>,
    /// The version that was read or written last.
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
    lock: Lock,
}

impl TaskStore {
    /// Opens the tasks of a host: shared ones if it has documents that processes share.
    pub(super) fn of(parts: &Parts) -> Result<Self, BoxError> {
        match parts.get::<dyn SharedDocuments>() {
            Some(documents) => Ok(Self::shared(SharedTasks::new(documents, parts.identity().name()))),
            None => Self::open(parts.data_dir()),
        }
    }

    /// Reads the file of tasks. A file that cannot be read as such is put aside.
    fn open(data: Option<&Path>) -> Result<Self, BoxError> {
        let Some(folder) = data.map(DataFolder::unheld) else {
            return Ok(Self::default());
        };
        let mut store = Self::default();
        store.read_file(&folder)?;
        if store.is_damaged {
            let aside = folder.quarantine(FILE)?;
            tracing::error!(
                aside,
                "scheduled tasks unreadable; the file is put aside, and no task is left"
            );
            (store.is_damaged, store.seen) = (false, None);
        }
        store.place = Place::File(Arc::new(folder));
        Ok(store)
    }

    /// Creates the store of tasks that processes share. They are read by the first change.
    fn shared(tasks: SharedTasks) -> Self {
        Self {
            place: Place::Shared(tasks),
            ..Self::default()
        }
    }

    /// Returns all tasks, as they were read last.
    pub(super) fn all(&self) -> &[ScheduledTask] {
        &self.tasks
    }

    /// Returns all tasks, to compute their next times.
    pub(super) fn all_mut(&mut self) -> &mut [ScheduledTask] {
        &mut self.tasks
    }

    /// Returns `true` if the tasks have changed since they were read or written last.
    pub(super) async fn is_stale(&self) -> bool {
        let version = match &self.place {
            Place::Memory => return false,
            Place::File(folder) => version_of(folder).map_err(ScheduleError::from),
            Place::Shared(tasks) => tasks.version().await.map(shared_version).map_err(ScheduleError::from),
        };
        match version {
            Ok(version) => version != self.seen,
            // A change reports the error.
            Err(_) => false,
        }
    }

    /// Begins a change: takes the lock and reads the tasks again if they were edited.
    ///
    /// # Errors
    ///
    /// Returns an error if another process holds the lock for too long, or the tasks cannot be
    /// looked at.
    pub(super) async fn change(&mut self, now: Timestamp) -> Result<Change<'_>, ScheduleError> {
        let (lock, is_edited) = match &self.place {
            Place::Memory => (Lock::Memory, false),
            Place::File(folder) => {
                let folder = folder.clone();
                let lock = locked(&folder.path().join(LOCK)).await?;
                let is_edited = version_of(&folder)? != self.seen;
                if is_edited {
                    self.read_file(&folder)?;
                }
                (Lock::File { _lock: lock }, is_edited)
            }
            Place::Shared(tasks) => {
                let lock = tasks.lock().await?;
                let is_edited = self.read_shared(&lock)?;
                (Lock::Shared(lock), is_edited)
            }
        };
        if is_edited {
            tracing::info!(tasks = self.tasks.len(), "scheduled tasks read again");
        }
        let mut tasks = self.tasks.clone();
        let is_changed = begin_new(&mut tasks, now);
        Ok(Change {
            store: self,
            tasks,
            is_changed,
            lock,
        })
    }

    /// Reads the file. The tasks stay as they are if it cannot be read as such.
    fn read_file(&mut self, folder: &DataFolder) -> Result<(), FileError> {
        // Looked at first: an edit meanwhile is another version.
        let seen = version_of(folder)?;
        let read = folder.read(FILE, MAX_BYTES)?;
        let parsed = read.map_or(Ok(Vec::new()), |bytes| serde_json::from_slice(&bytes));
        (self.seen, self.is_damaged) = (seen, parsed.is_err());
        match parsed {
            Ok(tasks) => self.take_over(tasks),
            Err(error) => tracing::error!(
                %error,
                "scheduled-tasks.json is not read; the tasks stay as they were before: repair the file"
            ),
        }
        Ok(())
    }

    /// Reads the document if its version is new, and returns `true` then.
    fn read_shared(&mut self, lock: &SharedLock) -> Result<bool, StoreError> {
        let document = lock.document();
        let seen = document.and_then(|document| shared_version(document.version));
        if seen == self.seen {
            return Ok(false);
        }
        let json = document.and_then(|document| document.json.as_deref());
        let tasks = json.map_or(Ok(Vec::new()), serde_json::from_str).map_err(|error| {
            let context = "the scheduled tasks that the processes share cannot be read: mend the document";
            StoreError::new(StoreErrorKind::Damaged, context).with_cause(error)
        })?;
        self.take_over(tasks);
        self.seen = seen;
        Ok(true)
    }

    /// Replaces the tasks by tasks that were read, with the next times that are known.
    fn take_over(&mut self, mut tasks: Vec<ScheduledTask>) {
        compare(&self.tasks, &mut tasks);
        self.tasks = tasks;
    }

    fn write_file(&self, folder: &DataFolder, tasks: &[ScheduledTask]) -> Result<Option<Version>, FileError> {
        if self.is_damaged {
            let aside = folder.quarantine_copy(FILE)?;
            tracing::error!(
                aside,
                "scheduled-tasks.json is written anew; what could not be read is put aside"
            );
        }
        let json = serde_json::to_vec_pretty(tasks).expect("tasks have no maps with keys that are no text");
        folder.replace(FILE, &json)?;
        version_of(folder)
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

    /// Writes the tasks, to their place first: the tasks in memory are the tasks there.
    ///
    /// # Errors
    ///
    /// Returns an error if the tasks cannot be written. They stay as they were.
    pub(super) async fn commit(mut self) -> Result<(), ScheduleError> {
        if !self.is_changed {
            self.store.tasks = self.tasks;
            return Ok(());
        }
        self.tasks
            .sort_by(|a, b| (&a.name, &a.principal).cmp(&(&b.name, &b.principal)));
        let written = match (self.lock, &self.store.place) {
            (Lock::Shared(lock), _) => {
                let json = serde_json::to_string(&self.tasks).expect("tasks have no maps with keys that are no text");
                shared_version(lock.replace(json).await?)
            }
            (_, Place::File(folder)) => self.store.write_file(folder, &self.tasks)?,
            (_, _) => None,
        };
        (self.store.tasks, self.store.seen, self.store.is_damaged) = (self.tasks, written, false);
        Ok(())
    }
}

/// Returns the version of the file; `None` if there is none.
fn version_of(folder: &DataFolder) -> Result<Option<Version>, FileError> {
    let found = folder.find(FILE)?;
    Ok(found.map(|entry| Version::File(entry.modified, entry.len)))
}

/// Returns the version of a document; `None` if there is none.
fn shared_version(number: u64) -> Option<Version> {
    (number > 0).then_some(Version::Shared(number))
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
