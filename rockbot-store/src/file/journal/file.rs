//! The turn journal: claims, appends and their durability.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::files::DataFolder;
use rockbot_core::turn::{
    Acceptance, Claim, ClaimTable, Fence, HolderRequests, JournalError, RunAccepted, RunBody, RunQuery, RunRecord,
    RunState, StoredRun, TurnJournal,
};
use rockbot_core::{Digest, TurnId};

use super::error::{cannot_open, conflict, failed};
use super::group_commit::GroupCommit;
use super::index::{RunIndex, RunStatus};
use super::line::JournalLineRef;
use super::load::load;
use super::options::{Durability, JournalOptions};
use super::segment::{RecordLocation, SegmentWriter};

/// A [`TurnJournal`] in a folder, which one process at a time can open.
///
/// Appends go straight to the file from the task that makes them: handing a line to another
/// thread costs more than the write. A record is in the index as soon as it is written, and
/// survives the failures that [`JournalOptions::durability`] names once the append resolves.
/// Outcomes are kept for one day to answer redelivered messages; then they expire, and segments
/// that only hold expired runs are removed.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use rockbot_core::turn::{RunQuery, TurnJournal};
/// use rockbot_store::file::FileTurnJournal;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("turns");
/// let journal = FileTurnJournal::open(&path)?;
/// assert!(journal.unfinished(&RunQuery::all()).await?.is_empty());
/// assert!(FileTurnJournal::open(&path).is_err(), "the folder is locked while it is open");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FileTurnJournal {
    pub(super) folder: DataFolder,
    pub(super) options: JournalOptions,
    state: Mutex<JournalState>,
    pub(super) commit: Arc<GroupCommit>,
}

#[derive(Debug)]
pub(super) struct JournalState {
    pub(super) writer: SegmentWriter,
    pub(super) index: RunIndex,
    claims: ClaimTable,
    /// The bytes of one append, reused.
    buffer: Vec<u8>,
    /// Number of times that lines moved or went away, for readers without the lock.
    pub(super) compactions: u64,
}

impl FileTurnJournal {
    /// Opens the journal in `folder`, which is created if it does not exist, with the default options.
    ///
    /// # Errors
    ///
    /// Returns an error if another process has it open, or if the folder cannot be read or written.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, JournalError> {
        Self::open_with(folder, JournalOptions::default())
    }

    /// Opens the journal in `folder` with `options`.
    ///
    /// Reads all segments, removes expired segments, and makes the unfinished runs available to
    /// [`TurnJournal::claim`].
    ///
    /// # Errors
    ///
    /// Returns an error as [`FileTurnJournal::open`] does.
    pub fn open_with(folder: impl Into<PathBuf>, options: JournalOptions) -> Result<Self, JournalError> {
        let folder = DataFolder::open(folder).map_err(cannot_open)?;
        let (writer, index) = load(&folder).map_err(|error| failed("the segments cannot be read", &folder, error))?;
        let mut claims = ClaimTable::new();
        // The lock of the folder has ended with the process that held it, and the claims of that process
        // with the lock.
        index
            .unfinished()
            .into_iter()
            .for_each(|run| claims.restore(run, Fence(0)));
        let state = JournalState {
            writer,
            index,
            claims,
            buffer: Vec::new(),
            compactions: 0,
        };
        let journal = Self {
            folder,
            options,
            state: Mutex::new(state),
            commit: Arc::default(),
        };
        journal.compact(&mut journal.lock());
        Ok(journal)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, JournalState> {
        // Between a write and its entry in the index no code can panic, so a poisoned lock is safe to use.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the lines that `write` puts into the shared buffer, which saves an allocation for each
    /// append.
    fn append(
        &self,
        state: &mut JournalState,
        write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<RecordLocation, JournalError> {
        state.buffer.clear();
        write(&mut state.buffer).map_err(|error| failed("a record cannot be written as JSON", &self.folder, error))?;
        let written = state.writer.append(&state.buffer);
        written.map_err(|error| {
            failed(
                "it cannot be written; check the free space and the permissions",
                &self.folder,
                error,
            )
        })
    }

    /// Waits until a critical record is on the disk if the options ask for that.
    async fn settle(&self, critical: bool) -> Result<(), JournalError> {
        if !critical || self.options.durability == Durability::Process {
            return Ok(());
        }
        let failed = |error: io::Error| failed("it cannot be synced to the disk", &self.folder, error);
        let handle = {
            let mut state = self.lock();
            self.confirm(&mut state)?;
            // Another handle to the file: the sync runs without the lock, while others append.
            state.writer.handle().map_err(|error| failed(error.into()))?
        };
        self.commit.sync(handle).await.map_err(|error| {
            self.lock().writer.distrust();
            failed(error)
        })
    }

    /// Makes the records before durable if a sync of them failed, and the options ask for that.
    fn confirm(&self, state: &mut JournalState) -> Result<(), JournalError> {
        if self.options.durability == Durability::Process {
            return Ok(());
        }
        let confirmed = state.writer.confirm(&self.folder);
        confirmed.map_err(|error| failed("earlier records cannot be synced to the disk", &self.folder, error))
    }

    /// Writes the acceptance of a run and claims it for `owner`.
    fn begin(
        &self,
        state: &mut JournalState,
        accepted: &RunAccepted,
        owner: &str,
        lease: Duration,
    ) -> Result<Claim, JournalError> {
        // Segments only change between runs' first lines, which keeps the check for it off the path of
        // each record.
        self.rotate(state);
        let location = self.append(state, |buffer| JournalLineRef::Accepted(accepted).write_to(buffer))?;
        state.index.accept(&accepted.run, accepted.digest, location);
        let now = self.options.clock.now();
        Ok(state.claims.accept(accepted.run.clone(), owner, lease, now))
    }
}

/// The claim on a run whose acceptance is not on the disk yet. Dropping it releases the run, when
/// the sync failed or its caller went away meanwhile: the line may be on the disk or not, and the
/// run is resumed by the message's redelivery or the next start.
struct UnsettledClaim<'a> {
    journal: &'a FileTurnJournal,
    /// `None` when the acceptance is on the disk.
    claim: Option<Claim>,
}

impl UnsettledClaim<'_> {
    fn settled(mut self) -> Claim {
        self.claim.take().expect("it is taken here alone")
    }
}

impl Drop for UnsettledClaim<'_> {
    fn drop(&mut self) {
        if let Some(claim) = &self.claim {
            self.journal.lock().claims.release(claim);
        }
    }
}

#[async_trait]
impl TurnJournal for FileTurnJournal {
    async fn accept(&self, accepted: &RunAccepted, owner: &str, lease: Duration) -> Result<Acceptance, JournalError> {
        let claim = loop {
            {
                // Digest check, write and claim happen under one lock, so one of two copies of a
                // message is accepted, and the other copy finds it. The guard ends before any
                // await.
                let mut state = self.lock();
                // A copy of a message is acknowledged because of the record of the first: that must be on the
                // disk, too.
                self.confirm(&mut state)?;
                match state.index.status(&accepted.run) {
                    None => break self.begin(&mut state, accepted, owner, lease)?,
                    Some(RunStatus::Open(digest)) if digest != accepted.digest => return Err(conflict(accepted)),
                    Some(RunStatus::Open(_)) => return Ok(Acceptance::Known(RunState::Unfinished)),
                    Some(RunStatus::Ended) => {}
                }
            }
            // The run has finished. If its outcome expires before it is read, the loop accepts the message
            // as a new run.
            match self.outcome_of(&accepted.run)? {
                None => {}
                Some((digest, _)) if digest != accepted.digest => return Err(conflict(accepted)),
                Some((_, outcome)) => return Ok(Acceptance::Known(RunState::Finished(outcome))),
            }
        };
        let unsettled = UnsettledClaim {
            journal: self,
            claim: Some(claim),
        };
        self.settle(true).await?;
        Ok(Acceptance::New(unsettled.settled()))
    }

    async fn append(&self, claim: &Claim, records: &[RunRecord]) -> Result<HolderRequests, JournalError> {
        let run = claim.run();
        let requests;
        {
            let mut state = self.lock();
            requests = state.claims.check(claim, self.options.clock.now())?;
            let mut lens = Vec::with_capacity(records.len());
            let mut location = self.append(&mut state, |buffer| {
                records.iter().try_for_each(|record| {
                    let before = buffer.len();
                    JournalLineRef::Record { run, record }.write_to(buffer)?;
                    lens.push((buffer.len() - before) as u64);
                    Ok(())
                })
            })?;
            // The lines of one write are adjacent, so their locations follow from their lengths.
            let locations = lens.into_iter().map(|len| {
                let next = location.offset + len;
                RecordLocation {
                    offset: std::mem::replace(&mut location.offset, next),
                    ..location
                }
            });
            state.index.record(run, locations);
        }
        self.settle(records.iter().any(|record| record.critical)).await?;
        Ok(requests)
    }

    async fn request_cancel(&self, run: &TurnId) -> Result<bool, JournalError> {
        Ok(self.lock().claims.request_cancel(run))
    }

    async fn finish(&self, claim: &Claim, outcome: &RunBody) -> Result<(), JournalError> {
        let run = claim.run();
        let at = self.options.clock.now();
        let mut state = self.lock();
        state.claims.check(claim, at)?;
        let digest = state
            .index
            .open(run)
            .map_or_else(|| Digest::of([""]), |open| open.digest);
        let location = self.append(&mut state, |buffer| {
            JournalLineRef::Finished {
                run,
                digest,
                at,
                outcome,
            }
            .write_to(buffer)
        })?;
        // Not synced: a finish that is lost in a power failure is repeated by the resume, under the same
        // message id.
        state.index.finish(run, at, location);
        state.claims.forget(run);
        Ok(())
    }

    async fn claim(&self, run: &TurnId, owner: &str, lease: Duration) -> Result<Option<Claim>, JournalError> {
        let mut state = self.lock();
        if state.index.open(run).is_none() {
            return Ok(None);
        }
        Ok(state.claims.claim(run, owner, lease, self.options.clock.now()))
    }

    async fn release(&self, claim: Claim) {
        self.lock().claims.release(&claim);
    }

    async fn read(&self, run: &TurnId) -> Result<Option<StoredRun>, JournalError> {
        self.read_run(run)
    }

    async fn unfinished(&self, query: &RunQuery) -> Result<Vec<TurnId>, JournalError> {
        let mut runs = self.lock().index.unfinished();
        // The index has no keys, and a folder belongs to one agent unless several hosts of a
        // process share it.
        if query.agent.is_some() {
            let mut matching = Vec::with_capacity(runs.len());
            for run in runs {
                let stored = self.read_run(&run)?;
                if stored.is_some_and(|stored| query.matches(&stored.accepted.key)) {
                    matching.push(run);
                }
            }
            runs = matching;
        }
        Ok(runs)
    }
}
