//! The open file: its lock, its writer thread and its pool of read connections.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use rockbot_core::files::{FileError, FileLock, plain_file};
use rockbot_core::store::{StoreError, StoreErrorKind};
use rusqlite::{Connection, OpenFlags};
use tokio::sync::{mpsc, oneshot};

use super::connection::connect;
use super::error::QueryError;
use super::read_pool::ReadPool;
use super::schema;
use super::writer::{self, PendingWrite, QUEUE_LEN, WriteJob};

/// An SQLite file that this process has open and locked.
#[derive(Debug)]
pub(in crate::sqlite) struct Database {
    path: PathBuf,
    readers: Arc<ReadPool>,
    writer: Option<WriterThread>,
    /// Last, because fields drop in order: the lock is released after the file is closed.
    _lock: FileLock,
}

/// The handle of the writer thread. Dropping the sender ends the thread once the queue is empty.
#[derive(Debug)]
struct WriterThread {
    jobs: mpsc::Sender<Box<dyn WriteJob>>,
    thread: JoinHandle<()>,
}

impl Database {
    /// Opens the file at `path`, creating it if it is missing.
    pub(in crate::sqlite) fn open(path: &Path) -> Result<Self, StoreError> {
        let opened = Self::try_open(path);
        opened.map_err(|error| failed(path, "opened", error))
    }

    fn try_open(path: &Path) -> Result<Self, QueryError> {
        let lock = FileLock::take(&beside(path, ".lock"))?;
        plain_file(path)?;
        let path = without_links(path)?;
        let mut connection = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        schema::prepare(&mut connection)?;
        Ok(Self {
            readers: Arc::new(ReadPool::new(&path)),
            writer: Some(WriterThread::start(connection, &path)?),
            path,
            _lock: lock,
        })
    }

    /// Runs `work` on a read connection. It sees every write that resolved before.
    pub(in crate::sqlite) async fn read<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<R, QueryError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let result = self.try_read(work).await;
        result.map_err(|error| failed(&self.path, "read", error))
    }

    async fn try_read<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<R, QueryError> + Send + 'static,
    ) -> Result<R, QueryError> {
        let _permit = self.readers.permits.acquire().await.map_err(|_| QueryError::CLOSED)?;
        let readers = self.readers.clone();
        let done = tokio::task::spawn_blocking(move || readers.read(work)).await;
        done.unwrap_or(Err(QueryError::CLOSED))
    }

    /// Runs `work` on the writer thread, and resolves when its transaction is synced to disk. If
    /// `work` fails, its changes are rolled back, and the changes of other writes in the same
    /// transaction are not.
    ///
    /// Not cancelled with its caller: a write that is queued will run.
    pub(in crate::sqlite) async fn write<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<R, QueryError> + Send + 'static,
    ) -> Result<R, StoreError> {
        self.write_then(work, |written| written).await
    }

    /// Like [`Database::write`], and calls `then` on the writer thread after the commit and before
    /// the next transaction.
    ///
    /// State that must follow the commits in order, such as a word index, is updated in `then`.
    pub(in crate::sqlite) async fn write_then<R: Send + 'static, S: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<R, QueryError> + Send + 'static,
        then: impl FnOnce(R) -> S + Send + 'static,
    ) -> Result<S, StoreError> {
        let (answer, answered) = oneshot::channel();
        let job = PendingWrite {
            work: Some(work),
            written: None,
            then,
            answer,
        };
        let result = match &self.writer {
            Some(writer) if writer.jobs.send(Box::new(job)).await.is_ok() => answered.await,
            _ => Ok(Err(QueryError::CLOSED)),
        };
        let result = result.unwrap_or(Err(QueryError::CLOSED));
        result.map_err(|error| failed(&self.path, "written", error))
    }
}

impl Drop for Database {
    /// Blocks until all queued writes are committed, then closes the file.
    fn drop(&mut self) {
        // The last connection to close checkpoints the WAL into the file, which a read-only one cannot:
        // so the readers are closed before the writer.
        self.readers.close();
        if let Some(WriterThread { jobs, thread }) = self.writer.take() {
            drop(jobs);
            // A panic there was reported to the waiting callers already.
            let _ = thread.join();
        }
    }
}

impl WriterThread {
    /// Spawns the thread with its bounded queue.
    fn start(connection: Connection, path: &Path) -> Result<Self, QueryError> {
        let (jobs, asked) = mpsc::channel(QUEUE_LEN);
        let thread = std::thread::Builder::new().name("rockbot-sqlite".to_owned());
        let thread = thread.spawn(move || writer::run(connection, asked));
        let thread = thread.map_err(|source| io("given its thread", path, source))?;
        Ok(Self { jobs, thread })
    }
}

/// Returns the error of an operation that failed, with the path of the file.
fn failed(path: &Path, tried: &str, QueryError(cause): QueryError) -> StoreError {
    let context = format!("the database `{}` cannot be {tried}", path.display());
    StoreError::new(StoreErrorKind::from(&cause), context).with_cause(cause)
}

/// Resolves symbolic links among the parent folders, because SQLite is told to follow none.
fn without_links(path: &Path) -> Result<PathBuf, QueryError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = folder.canonicalize().map_err(|cause| io("found", folder, cause))?;
    Ok(match path.file_name() {
        Some(name) => folder.join(name),
        None => folder,
    })
}

/// Returns the path with `ending` appended to the file name.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

fn io(tried: &'static str, path: &Path, cause: std::io::Error) -> QueryError {
    FileError::Io {
        tried,
        path: path.to_owned(),
        cause,
    }
    .into()
}
