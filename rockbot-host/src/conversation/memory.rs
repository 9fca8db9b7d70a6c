//! The conversation memory that survives the process.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use rockbot_core::files::DataFolder;
use rockbot_core::store::{ConversationMemory, ConversationTurn, StoreError, StoreErrorKind};
use rockbot_core::{Principal, SessionId};

use super::compaction;
use super::compaction_thread::CompactionThread;
use super::folder::{ConversationFolder, failed};
use super::layout::{self, SessionKey};
use super::open_logs::OpenLogs;
use super::options::ConversationOptions;
use super::preload;
use super::session::Session;
use super::session_cache::{SessionCache, Slot};

/// A [`ConversationMemory`] in a folder, which one process at a time can open.
///
/// An append resolves when the operating system has it: it survives `kill -9`. Operations on one session happen one
/// after the other, in the order in which they were called; those on different sessions side by side. A session
/// whose files are read only now and then costs nothing but these files.
///
/// What was said is all in the files at any time. [`flush`](ConversationMemory::flush) folds each log into its document
/// for other programs that read documents only; it costs two syncs of the disk for each session that changed.
///
/// ```
/// # use rockbot_core::{Principal, SessionId};
/// # use rockbot_core::store::ConversationMemory;
/// use rockbot_host::conversation::FileConversationMemory;
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
    /// First, so that its thread has ended when the folder is let go.
    compaction: CompactionThread,
    sessions: Arc<Sessions>,
}

/// What the thread that folds shares with the callers.
#[derive(Debug)]
struct Sessions {
    folder: Arc<ConversationFolder>,
    cache: SessionCache,
    open_logs: OpenLogs,
}

impl FileConversationMemory {
    /// Opens the memory in `folder`, which is made if it is missing, with the default options.
    ///
    /// # Errors
    ///
    /// Fails when the folder is open already, here or in another process, and when it cannot be read or written.
    /// Documents that cannot be read are no error: see [`FileConversationMemory::damaged`].
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_with(folder, ConversationOptions::default())
    }

    /// Opens the memory in `folder` with `options`, and reads the sessions that are not idle.
    ///
    /// # Errors
    ///
    /// Fails as [`FileConversationMemory::open`] does.
    pub fn open_with(folder: impl Into<PathBuf>, options: ConversationOptions) -> Result<Self, StoreError> {
        let folder = DataFolder::open(folder).map_err(|error| failed("conversations cannot be opened", error))?;
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

    /// How many documents were set aside, and how many lines skipped, since they could not be read.
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
            self.compaction.schedule(slot);
        }
        match appended.to_sync {
            None => Ok(()),
            Some((commit, file)) => commit
                .sync(file)
                .await
                .map_err(|error| StoreError::caused_by("a conversation cannot be synced to the disk", error)),
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

    async fn clear(&self, principal: &Principal, session: &SessionId) -> Result<(), StoreError> {
        self.sessions.clear(&(principal.clone(), session.clone()))
    }

    async fn sessions(&self, principal: &Principal) -> Result<Vec<SessionId>, StoreError> {
        let (sessions, principal) = (self.sessions.clone(), principal.clone());
        let listed = tokio::task::spawn_blocking(move || sessions.list(&principal)).await;
        listed.unwrap_or_else(|error| {
            let context = "conversations cannot be listed while the runtime ends";
            Err(StoreError::new(StoreErrorKind::Closed, context).with_source(error))
        })
    }

    async fn flush(&self) -> Result<(), StoreError> {
        let sessions = self.sessions.clone();
        self.compaction.run(move || sessions.compact_all()).await
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

    /// Works on a session, which is read first if it must be.
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
        // Whatever is removed before an error, the next look is at what is left.
        let loaded = session.take();
        // The other program's first: alone it would come back in the place of ours.
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

    /// The sessions of `principal` that have files.
    fn list(&self, principal: &Principal) -> Result<Vec<SessionId>, StoreError> {
        let failed = |error| failed("conversations cannot be listed", error);
        let found = self.folder.files.list_of(principal).map_err(failed)?;
        let places = found.iter().filter_map(|found| layout::place(&found.name));
        let own = places.filter(|place| place.key.0 == *principal);
        Ok(own
            .map(|place| place.key.1)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect())
    }

    /// Folds every session that has a log.
    fn compact_all(&self) -> Result<(), StoreError> {
        let failed = |error| failed("conversations cannot be listed", error);
        let mut result = Ok(());
        for found in self.folder.files.list("").map_err(failed)? {
            let Some(place) = layout::place(&found.name).filter(|place| place.kind == layout::FileKind::Log) else {
                continue;
            };
            let folded = self
                .with(&place.key, |_| Ok(()))
                .and_then(|(slot, ())| compaction::compact(&self.folder, &slot));
            result = result.and(folded);
        }
        result
    }
}
