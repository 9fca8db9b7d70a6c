//! The journal that survives the process.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::turn::{
    Acceptance, Claim, ClaimTable, Fence, JournalError, RunAccepted, RunRecord, RunState, StoredRun, TurnJournal,
};
use rockbot_core::{BoxError, Clock, Digest, SystemClock, TurnId};
use serde_json::value::RawValue;

use super::group_commit::GroupCommit;
use super::index::{EndedRun, Index};
use super::line::{Line, LineRef};
use super::segment::{self, Place, Writer};

/// What a record survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Durability {
    /// The end of the process, also by `kill -9`: a record is handed to the operating system before the act.
    #[default]
    Process,
    /// Power loss too: acceptance and the start of mutating calls wait until the disk has them. Those who wait at
    /// the same time share one sync.
    Synced,
}

/// How a journal is kept.
#[derive(Debug, Clone)]
pub struct JournalOptions {
    /// What a record survives. Default [`Durability::Process`].
    pub durability: Durability,
    /// How large a segment grows before the next one begins, in bytes. Default 32 MiB.
    pub segment_bytes: u64,
    /// The clock that leases and the day of keeping are measured on.
    pub clock: Arc<dyn Clock>,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Process,
            segment_bytes: 32 << 20,
            clock: Arc::new(SystemClock),
        }
    }
}

/// A [`TurnJournal`] in a folder. One process at a time can open it.
///
/// Writes go straight to the file, from the task that makes them: handing one to another thread costs more
/// than the write.
#[derive(Debug)]
pub struct FileTurnJournal {
    folder: PathBuf,
    options: JournalOptions,
    state: Mutex<State>,
    commit: Arc<GroupCommit>,
    /// Held as long as the journal is open.
    _lock: File,
}

#[derive(Debug)]
struct State {
    writer: Writer,
    index: Index,
    claims: ClaimTable,
    buffer: Vec<u8>,
}

impl FileTurnJournal {
    /// Opens the journal in `folder`, which is made if it is missing, with the default options.
    ///
    /// # Errors
    ///
    /// Fails when another process has it open, and when the folder cannot be read or written.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, JournalError> {
        Self::open_with(folder, JournalOptions::default())
    }

    /// Opens the journal in `folder` with `options`.
    ///
    /// # Errors
    ///
    /// Fails as [`FileTurnJournal::open`] does.
    pub fn open_with(folder: impl Into<PathBuf>, options: JournalOptions) -> Result<Self, JournalError> {
        let folder = folder.into();
        std::fs::create_dir_all(&folder).map_err(|error| failed("the folder cannot be made", &folder, error))?;
        let lock = lock(&folder)?;
        let (writer, index) = load(&folder).map_err(|error| failed("the segments cannot be read", &folder, error))?;
        let mut claims = ClaimTable::new();
        // Whoever held a run before this process did not survive its lock.
        index
            .unfinished()
            .into_iter()
            .for_each(|run| claims.restore(run, Fence(0)));
        let state = State {
            writer,
            index,
            claims,
            buffer: Vec::new(),
        };
        let journal = Self {
            folder,
            options,
            state: Mutex::new(state),
            commit: Arc::default(),
            _lock: lock,
        };
        journal.compact();
        Ok(journal)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Between a write and its entry in the index there is nothing that can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the lines that `write` puts into the buffer.
    fn append(
        &self,
        state: &mut State,
        write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<Place, JournalError> {
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

    /// Waits until the disk has what was written, when that was asked for.
    async fn settle(&self, critical: bool) -> Result<(), JournalError> {
        if !critical || self.options.durability == Durability::Process {
            return Ok(());
        }
        let failed = |error| failed("it cannot be synced to the disk", &self.folder, error);
        let handle = self.lock().writer.handle().map_err(failed)?;
        self.commit.sync(handle).await.map_err(failed)
    }

    /// Begins the next segment when this one is full, and removes those that nobody needs.
    fn rotate(&self, state: &mut State) {
        if state.writer.len() < self.options.segment_bytes {
            return;
        }
        match Writer::open(&self.folder, state.writer.number() + 1) {
            Ok(writer) => {
                let _ = state.writer.handle().and_then(|full| full.sync_data());
                state.writer = writer;
            }
            Err(error) => tracing::warn!(%error, "the turn journal cannot begin a new segment; the old one grows on"),
        }
    }

    /// Removes the segments whose runs ended long ago, after carrying unfinished runs forward.
    fn compact(&self) {
        let mut state = self.lock();
        let needed: std::collections::BTreeSet<u32> = state.index.expire(self.options.clock.now()).collect();
        let numbers = segment::numbers(&self.folder).unwrap_or_default();
        let current = state.writer.number();
        for number in numbers.into_iter().filter(|number| *number != current) {
            // Segments are removed from the oldest on: a finished run may have begun in an earlier one.
            if needed.contains(&number) {
                return;
            }
            let removed = self
                .carry_forward(&mut state, number)
                .and_then(|()| segment::remove(&self.folder, number));
            if let Err(error) = removed {
                tracing::warn!(%error, segment = number, "an old segment of the turn journal cannot be removed");
                return;
            }
        }
    }

    /// Writes the unfinished runs of a segment again, at the end of the current one.
    fn carry_forward(&self, state: &mut State, number: u32) -> io::Result<()> {
        for run in state.index.open_in(number) {
            let Some(open) = state.index.open(&run) else { continue };
            let lines: Vec<_> = open
                .lines
                .iter()
                .map(|place| segment::read_line(&self.folder, *place))
                .collect::<Result<_, _>>()?;
            let digest = open.digest;
            let mut place = state.writer.append(&lines.concat())?;
            state.index.accept(&run, digest, place);
            for pair in lines.windows(2) {
                place.offset += pair[0].len() as u64;
                state.index.record(&run, place);
            }
        }
        state.writer.handle()?.sync_data()
    }

    fn outcome(&self, ended: EndedRun) -> io::Result<Box<RawValue>> {
        match parse(&segment::read_line(&self.folder, ended.finished)?)? {
            Line::Finished { outcome, .. } => Ok(outcome),
            Line::Accepted(_) | Line::Record { .. } => Err(io::Error::other("the index points at another line")),
        }
    }

    /// The lines of an unfinished run.
    fn read_open(&self, places: &[Place]) -> io::Result<StoredRun> {
        let mut lines = places
            .iter()
            .map(|place| parse(&segment::read_line(&self.folder, *place)?));
        let Some(Line::Accepted(accepted)) = lines.next().transpose()? else {
            return Err(io::Error::other("the index points at another line"));
        };
        let records = lines.filter_map(|line| match line {
            Ok(Line::Record { record, .. }) => Some(Ok(record)),
            Ok(Line::Accepted(_) | Line::Finished { .. }) => None,
            Err(error) => Some(Err(error)),
        });
        Ok(StoredRun {
            accepted,
            records: records.collect::<Result<_, _>>()?,
            state: RunState::Unfinished,
        })
    }

    /// The lines of a finished run, as far as they are still there: its records stand between the first and
    /// the last of them, among those of other runs.
    fn read_ended(&self, run: &TurnId, ended: EndedRun) -> io::Result<Option<StoredRun>> {
        let (mut accepted, mut records) = (None, Vec::new());
        for number in ended.accepted.segment..=ended.finished.segment {
            let from = if number == ended.accepted.segment {
                ended.accepted.offset
            } else {
                0
            };
            segment::read(&self.folder, number, from, |place, line| {
                match parse(line) {
                    Ok(Line::Accepted(found)) if found.run == *run => (accepted, records) = (Some(found), Vec::new()),
                    Ok(Line::Record { run: of, record }) if of == *run => records.push(record),
                    _ => {}
                }
                place < ended.finished
            })?;
        }
        let state = RunState::Finished(self.outcome(ended)?);
        Ok(accepted.map(|accepted| StoredRun {
            accepted,
            records,
            state,
        }))
    }

    fn known(&self, state: &State, accepted: &RunAccepted) -> Result<Option<RunState>, JournalError> {
        let (digest, known) = match (state.index.open(&accepted.run), state.index.ended(&accepted.run)) {
            (Some(open), _) => (open.digest, None),
            (None, Some(ended)) => (ended.digest, Some(ended)),
            (None, None) => return Ok(None),
        };
        if digest != accepted.digest {
            let key = &accepted.key;
            return Err(JournalError::Conflict {
                session: key.session.clone(),
                message: key.message.clone(),
            });
        }
        let Some(ended) = known else {
            return Ok(Some(RunState::Unfinished));
        };
        let outcome = self
            .outcome(ended)
            .map_err(|error| failed("an outcome cannot be read", &self.folder, error))?;
        Ok(Some(RunState::Finished(outcome)))
    }
}

#[async_trait]
impl TurnJournal for FileTurnJournal {
    async fn accept(&self, accepted: &RunAccepted, owner: &str, lease: Duration) -> Result<Acceptance, JournalError> {
        let claim = {
            let mut state = self.lock();
            if let Some(known) = self.known(&state, accepted)? {
                return Ok(Acceptance::Known(known));
            }
            self.rotate(&mut state);
            let place = self.append(&mut state, |buffer| LineRef::Accepted(accepted).write_to(buffer))?;
            state.index.accept(&accepted.run, accepted.digest, place);
            state
                .claims
                .accept(accepted.run.clone(), owner, lease, self.options.clock.now())
        };
        self.settle(true).await?;
        Ok(Acceptance::New(claim))
    }

    async fn append(&self, claim: &Claim, records: &[RunRecord]) -> Result<(), JournalError> {
        let run = claim.run();
        {
            let mut state = self.lock();
            state.claims.check(claim, self.options.clock.now())?;
            let mut lens = Vec::with_capacity(records.len());
            let mut place = self.append(&mut state, |buffer| {
                records.iter().try_for_each(|record| {
                    let before = buffer.len();
                    LineRef::Record { run, record }.write_to(buffer)?;
                    lens.push((buffer.len() - before) as u64);
                    Ok(())
                })
            })?;
            for len in lens {
                state.index.record(run, place);
                place.offset += len;
            }
        }
        self.settle(records.iter().any(|record| record.critical)).await
    }

    async fn finish(&self, claim: Claim, outcome: &RawValue) -> Result<(), JournalError> {
        let (run, at) = (claim.run(), self.options.clock.now());
        let mut state = self.lock();
        state.claims.check(&claim, at)?;
        let digest = state
            .index
            .open(run)
            .map_or_else(|| Digest::of([""]), |open| open.digest);
        let place = self.append(&mut state, |buffer| {
            LineRef::Finished {
                run,
                digest,
                at,
                outcome,
            }
            .write_to(buffer)
        })?;
        state.index.finish(run, digest, at, place);
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
        let state = self.lock();
        let stored = match (state.index.open(run), state.index.ended(run)) {
            (Some(open), _) => self.read_open(&open.lines).map(Some),
            (None, Some(ended)) => self.read_ended(run, ended),
            (None, None) => Ok(None),
        };
        stored.map_err(|error| failed("a turn cannot be read", &self.folder, error))
    }

    async fn unfinished(&self) -> Result<Vec<TurnId>, JournalError> {
        Ok(self.lock().index.unfinished())
    }
}

/// Takes the folder for this process.
fn lock(folder: &Path) -> Result<File, JournalError> {
    let path = folder.join("lock");
    let options = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path);
    let file = options.map_err(|error| failed("the lock file cannot be opened", folder, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let message = "another process has it open; stop that one, or use another data folder";
            Err(failed(message, folder, io::Error::from(io::ErrorKind::WouldBlock)))
        }
        Err(TryLockError::Error(error)) => Err(failed("the lock file cannot be locked", folder, error)),
    }
}

/// Reads all segments. A line that cannot be read is left where it is, with a warning.
fn load(folder: &Path) -> io::Result<(Writer, Index)> {
    let numbers = segment::numbers(folder)?;
    let (mut index, mut unreadable) = (Index::default(), 0_u64);
    for number in &numbers {
        segment::read(folder, *number, 0, |place, line| {
            match parse(line) {
                Ok(line) => index.take_in(place, &line),
                Err(_) => unreadable += u64::from(!line.trim_ascii().is_empty()),
            }
            true
        })?;
    }
    if unreadable > 0 {
        tracing::warn!(lines = unreadable, folder = %folder.display(), "the turn journal has lines that cannot be read");
    }
    Ok((Writer::open(folder, numbers.last().copied().unwrap_or(1))?, index))
}

fn parse(line: &[u8]) -> io::Result<Line> {
    serde_json::from_slice(line).map_err(io::Error::from)
}

fn failed(context: &str, folder: &Path, source: impl Into<BoxError>) -> JournalError {
    JournalError::Io {
        context: format!("{context} ({})", folder.display()),
        source: source.into(),
    }
}
