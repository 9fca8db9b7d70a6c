//! The conversation memory on disk.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use rockbot_core::files::DataFolder;
use rockbot_core::store::{
    ConversationMemory, ConversationPage, ConversationQuery, ConversationTurn, StoreError, StoreErrorKind,
};
use rockbot_core::{Principal, SessionId};

use super::compaction;
use super::compaction_thread::CompactionThread;
use super::folder::{ConversationFolder, failed};
use super::layout::{self, SessionKey};
use super::open_logs::OpenLogs;
use super::options::ConversationOptions;
use super::preload;
use super::session::{PendingSync, Session};
use super::session_cache::{SessionCache, Slot};

/// A [`ConversationMemory`] in a folder, which one process at a time can open.
///
/// An append resolves when the operating system has it, so it survives `kill -9`; see
/// [`Durability`](crate::file::Durability) for power loss. Operations on one session run one
/// after the other, in the order of the calls. Operations on different sessions run in parallel.
/// Idle sessions are evicted from memory and read again when they are used.
///
/// The files are complete at any time. [`flush`](ConversationMemory::flush) compacts each log
/// into its document for other programs that read documents only; it costs two syncs of the disk
/// for each session that changed.
///
/// # Examples
///
/// ```
/// # use rockbot_core::{Principal, SessionId};
/// # use rockbot_core::store::ConversationMemory;
/// use rockbot_store::file::FileConversationMemory;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::BoxError> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("conversations");
/// let memory = FileConversationMemory::open(path)?;
/// let recent = memory.recent(&Principal::default(), &SessionId::from("session"), 20).await?;
/// assert!(recent.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FileConversationMemory {
    /// Dropped first, so that its thread has ended when the lock of the folder is released.
    compaction: CompactionThread,
    sessions: Arc<Sessions>,
}

/// The sessions, shared by callers and the compaction thread.
#[derive(Debug)]
struct Sessions {
    folder: Arc<ConversationFolder>,
    cache: SessionCache,
    open_logs: OpenLogs,
}

impl FileConversationMemory {
    /// Opens the memory in `folder`, which is created if it does not exist, with the default options.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder is open already, in this or another process, or cannot be read
    /// or written. Documents that cannot be read are no error: see
    /// [`FileConversationMemory::damaged`].
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_with(folder, ConversationOptions::default())
    }

    /// Opens the memory in `folder` with `options`, and reads the sessions that are not idle.
    ///
    /// # Errors
    ///
    /// Returns an error as [`FileConversationMemory::open`] does.
    pub fn open_with(folder: impl Into<PathBuf>, options: ConversationOptions) -> Result<Self, StoreError> {
        let folder = DataFolder::open(folder).map_err(|error| failed("conversations cannot be opened", error))?;
        folder.remove_drafts(|_| true, |name| layout::parse(name).is_some_and(|file| file.is_native));
        let cache = SessionCache::new(options.max_cached_sessions, options.idle_timeout);
        let sessions = Sessions {
            folder: Arc::new(ConversationFolder::new(folder, options)),
            cache,
            open_logs: OpenLogs::default(),
        };
        preload::load_recent(&sessions.folder, &sessions.cache)?;
        let compaction = CompactionThread::start(sessions.folder.clone()).map_err(|error| {
            StoreError::caused_by("the thread that compacts conversations cannot be started", error)
        })?;
        Ok(Self {
            compaction,
            sessions: Arc::new(sessions),
        })
    }

    /// Returns how many documents were quarantined and how many lines were skipped because they could
    /// not be read.
    pub fn damaged(&self) -> u64 {
        self.sessions.folder.damaged()
    }
}

#[async_trait]
impl ConversationMemory for FileConversationMemory {
    async fn append(
        &self,
        principal: &Principal,
        session: &SessionId,
        entries: Vec<ConversationTurn>,
    ) -> Result<(), StoreError> {
        let key = (principal.clone(), session.clone());
        let Some((slot, appended)) = self.sessions.append(&key, entries)? else {
            return Ok(());
        };
        if appended.opened_log {
            self.sessions.open_logs.opened(&slot);
        }
        if appended.wants_compaction {
            self.compaction.schedule(slot.clone());
        }
        match appended.to_sync {
            None => Ok(()),
            Some(PendingSync { commit, file, turns }) => {
                let synced = commit.sync(file).await;
                if let Some(session) = slot.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                    session.mark_synced(turns, synced.is_ok());
                }
                synced.map_err(|error| {
                    let context = "a conversation is written, and cannot be synced to the disk; append it again";
                    StoreError::new(StoreErrorKind::NotDurable, context).with_cause(error)
                })
            }
        }
    }

    async fn recent(
        &self,
        principal: &Principal,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<ConversationTurn>, StoreError> {
        let key = (principal.clone(), session.clone());
        self.sessions
            .with(&key, |session| Ok(session.recent(limit)))
            .map(|(_, recent)| recent)
    }

    async fn page(
        &self,
        principal: &Principal,
        session: &SessionId,
        query: &ConversationQuery,
    ) -> Result<ConversationPage, StoreError> {
        let key = (principal.clone(), session.clone());
        let read = self.sessions.with(&key, |session| Ok(session.page(query)));
        read.map(|(_, page)| page)
    }

    async fn clear(&self, principal: &Principal, session: &SessionId) -> Result<(), StoreError> {
        self.sessions.clear(&(principal.clone(), session.clone()))
    }

    async fn sessions(&self, principal: &Principal) -> Result<Vec<SessionId>, StoreError> {
        let sessions = self.sessions.clone();
        let principal = principal.clone();
        let listed = tokio::task::spawn_blocking(move || sessions.list(&principal)).await;
        listed.unwrap_or_else(|error| {
            let context = "conversations cannot be listed while the runtime ends";
            Err(StoreError::new(StoreErrorKind::Closed, context).with_cause(error))
        })
    }

    async fn flush(&self) -> Result<(), StoreError> {
        let sessions = self.sessions.clone();
        self.compaction.run(move |ends| sessions.compact_all(ends)).await
    }
}

impl Sessions {
    fn append(
        &self,
        key: &SessionKey,
        entries: Vec<ConversationTurn>,
    ) -> Result<Option<(Slot, super::session::Appended)>, StoreError> {
        let (slot, appended) = self.with(key, |session| session.append(&self.folder, entries))?;
        Ok(appended.map(|appended| (slot, appended)))
    }

    /// Runs `work` on a session under its lock, after reading it if it is not in memory.
    ///
    /// The files are read under the lock of the session, so that concurrent callers read them once,
    /// and never under the lock of the cache, so that other sessions do not wait.
    fn with<R>(
        &self,
        key: &SessionKey,
        work: impl FnOnce(&mut Session) -> Result<R, StoreError>,
    ) -> Result<(Slot, R), StoreError> {
        let slot = self.slot(key);
        let result = {
            let mut session = slot.lock().unwrap_or_else(PoisonError::into_inner);
            let session = match session.as_mut() {
                Some(session) => session,
                None => session.insert(Session::load(&self.folder, key)?),
            };
            work(session)?
        };
        Ok((slot, result))
    }

    fn slot(&self, key: &SessionKey) -> Slot {
        self.cache.slot(key.clone(), self.folder.options.clock.now())
    }

    fn clear(&self, key: &SessionKey) -> Result<(), StoreError> {
        let failed = |error| failed("a conversation cannot be removed", error);
        let stem = layout::stem(key).map_err(|error| StoreError::caused_by("the session has no file", error))?;
        let slot = self.slot(key);
        let mut session = slot.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken out first: after an error some files may be gone, and the session has to be read again.
        let loaded = session.take();
        // The foreign document first: if it were left alone by an error, it would be read in place of
        // the removed one.
        let foreign = self.folder.foreign_of(&key.0, &key.1);
        for name in foreign.into_iter().chain([layout::document(&stem), layout::log(&stem)]) {
            self.folder.files.remove(&name).map_err(failed)?;
        }
        *session = loaded.map(|mut loaded| {
            loaded.forget(&self.folder);
            loaded
        });
        Ok(())
    }

    /// Lists the sessions of `principal` that have files.
    fn list(&self, principal: &Principal) -> Result<Vec<SessionId>, StoreError> {
        let failed = |error| failed("conversations cannot be listed", error);
        let found = self.folder.files.list_of(principal).map_err(failed)?;
        let files = found.iter().filter_map(|found| layout::parse(&found.name));
        let own = files.filter(|file| file.key.0 == *principal);
        Ok(own
            .map(|file| file.key.1)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect())
    }

    /// Compacts every session that has a log, until `ends` is set. Returns the first error after
    /// trying all.
    fn compact_all(&self, ends: &AtomicBool) -> Result<(), StoreError> {
        let failed = |error| failed("conversations cannot be listed", error);
        let mut result = Ok(());
        for found in self.folder.files.list("").map_err(failed)? {
            // The logs that are left are complete; a host that ends must not wait for thousands of them.
            if ends.load(Ordering::Relaxed) {
                break;
            }
            let Some(file) = layout::parse(&found.name).filter(|file| file.kind == layout::FileKind::Log) else {
                continue;
            };
            let compacted = self
                .with(&file.key, |_| Ok(()))
                .and_then(|(slot, ())| compaction::compact(&self.folder, &slot));
            result = result.and(compacted);
        }
        result
    }
}
