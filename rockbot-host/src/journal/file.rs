//! The journal that survives the process.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::files::{DataFolder, FileError};
use rockbot_core::turn::{
    Acceptance, Claim, ClaimTable, Fence, JournalError, RunAccepted, RunRecord, RunState, StoredRun, TurnJournal,
};
use rockbot_core::{BoxError, Clock, Digest, SystemClock, TurnId};
use serde_json::value::RawValue;

use super::group_commit::GroupCommit;
use super::index::{EndedRun, RunIndex, RunLines};
use super::line::{JournalLine, JournalLineRef};
use super::segment::{self, RecordLocation, SegmentWriter};

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
    folder: DataFolder,
    options: JournalOptions,
    state: Mutex<JournalState>,
    commit: Arc<GroupCommit>,
}

#[derive(Debug)]
struct JournalState {
    writer: SegmentWriter,
    index: RunIndex,
    claims: ClaimTable,
    buffer: Vec<u8>,
    /// Counts how often lines moved or went away, for those who read without the lock.
    compactions: u64,
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
        let folder = DataFolder::open(folder).map_err(|error| match error {
            FileError::Locked(folder) => JournalError::Locked(folder.display().to_string()),
            error => JournalError::Io {
                context: "the folder cannot be opened".into(),
                source: error.into(),
            },
        })?;
        let (writer, index) = load(&folder).map_err(|error| failed("the segments cannot be read", &folder, error))?;
        let mut claims = ClaimTable::new();
        // Whoever held a run before this process did not survive its lock.
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

    fn lock(&self) -> MutexGuard<'_, JournalState> {
        // Between a write and its entry in the index there is nothing that can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the lines that `write` puts into the buffer.
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

    /// Waits until the disk has what was written, when that was asked for.
    async fn settle(&self, critical: bool) -> Result<(), JournalError> {
        if !critical || self.options.durability == Durability::Process {
            return Ok(());
        }
        let failed = |error: io::Error| failed("it cannot be synced to the disk", &self.folder, error);
        let handle = self.lock().writer.handle().map_err(|error| failed(error.into()))?;
        self.commit.sync(handle).await.map_err(failed)
    }

    /// Begins the next segment when this one is full, and removes those that nobody needs.
    fn rotate(&self, state: &mut JournalState) {
        if state.writer.len() < self.options.segment_bytes {
            return;
        }
        match SegmentWriter::open(&self.folder, state.writer.number() + 1) {
            Ok(writer) => {
                if let Ok(full) = state.writer.handle() {
                    let _ = full.sync_data();
                }
                state.writer = writer;
                self.compact(state);
            }
            Err(error) => tracing::warn!(%error, "the turn journal cannot begin a new segment; the old one grows on"),
        }
    }

    /// Removes what only tells of runs that ended long ago, up to the first segment that holds a line of one that
    /// ended within the day. The lines of unfinished runs stay where they are.
    fn compact(&self, state: &mut JournalState) {
        let needed = state.index.expire(self.options.clock.now());
        let numbers = segment::numbers(&self.folder).unwrap_or_default();
        let end = needed.map_or(state.writer.number(), |needed| needed.min(state.writer.number()));
        for number in numbers.into_iter().take_while(|number| *number < end) {
            if let Err(error) = self.shrink(state, number) {
                tracing::warn!(%error, segment = number, "an old segment of the turn journal cannot be removed");
            }
        }
    }

    /// Leaves only the lines of unfinished runs in a segment, or removes it.
    fn shrink(&self, state: &mut JournalState, number: u32) -> io::Result<()> {
        let locations = state.index.open_in(number);
        state.compactions += 1;
        if locations.is_empty() {
            return Ok(segment::remove(&self.folder, number)?);
        }
        if segment::count(&self.folder, number)? > locations.len() {
            let moved = segment::rewrite(&self.folder, number, &locations)?;
            state.index.relocate(&locations, &moved);
        }
        Ok(())
    }

    fn outcome(&self, ended: EndedRun) -> io::Result<Box<RawValue>> {
        match parse(&segment::read_line(&self.folder, ended.finished)?)? {
            JournalLine::Finished { outcome, .. } => Ok(outcome),
            JournalLine::Accepted(_) | JournalLine::Record { .. } => {
                Err(io::Error::other("the index points at another line"))
            }
        }
    }

    /// The lines of an unfinished run.
    fn read_open(&self, locations: &[RecordLocation]) -> io::Result<StoredRun> {
        let mut lines = locations
            .iter()
            .map(|location| parse(&segment::read_line(&self.folder, *location)?));
        let Some(JournalLine::Accepted(accepted)) = lines.next().transpose()? else {
            return Err(io::Error::other("the index points at another line"));
        };
        let records = lines.filter_map(|line| match line {
            Ok(JournalLine::Record { record, .. }) => Some(Ok(record)),
            Ok(JournalLine::Accepted(_) | JournalLine::Finished { .. }) => None,
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
        let between = ended.accepted.segment..=ended.finished.segment;
        for number in segment::numbers(&self.folder)?
            .into_iter()
            .filter(|number| between.contains(number))
        {
            let from = if number == ended.accepted.segment {
                ended.accepted.offset
            } else {
                0
            };
            segment::read(&self.folder, number, from, |location, line| {
                match parse(line) {
                    Ok(JournalLine::Accepted(found)) if found.run == *run && accepted.is_none() => {
                        accepted = Some(found)
                    }
                    Ok(JournalLine::Record { run: of, record }) if of == *run => records.push(record),
                    _ => {}
                }
                location < ended.finished
            })?;
        }
        let state = RunState::Finished(self.outcome(ended)?);
        Ok(accepted.map(|accepted| StoredRun {
            accepted,
            records,
            state,
        }))
    }

    fn outcome_of(&self, run: &TurnId) -> Result<Option<Box<RawValue>>, JournalError> {
        let outcome = self.look_up(|index| index.ended(run), |ended| self.outcome(*ended));
        outcome.map_err(|error| failed("an outcome cannot be read", &self.folder, error))
    }

    /// Finds something in the index and reads it from the segments. Nobody who writes waits for that, so what was
    /// found may move meanwhile: then it is read once more, with everybody waiting.
    fn look_up<P, T>(
        &self,
        find: impl Fn(&RunIndex) -> Option<P>,
        read: impl Fn(&P) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        let (found, compactions) = {
            let state = self.lock();
            (find(&state.index), state.compactions)
        };
        let Some(found) = found else { return Ok(None) };
        let value = read(&found);
        let state = self.lock();
        if state.compactions == compactions {
            return value.map(Some);
        }
        find(&state.index).map(|found| read(&found)).transpose()
    }

    /// Writes that a run is accepted, and gives it to `owner`.
    fn begin(
        &self,
        state: &mut JournalState,
        accepted: &RunAccepted,
        owner: &str,
        lease: Duration,
    ) -> Result<Claim, JournalError> {
        self.rotate(state);
        let location = self.append(state, |buffer| JournalLineRef::Accepted(accepted).write_to(buffer))?;
        state.index.accept(&accepted.run, accepted.digest, location);
        let now = self.options.clock.now();
        Ok(state.claims.accept(accepted.run.clone(), owner, lease, now))
    }
}

#[async_trait]
impl TurnJournal for FileTurnJournal {
    async fn accept(&self, accepted: &RunAccepted, owner: &str, lease: Duration) -> Result<Acceptance, JournalError> {
        let claim = loop {
            {
                let mut state = self.lock();
                match state.index.digest(&accepted.run) {
                    None => break self.begin(&mut state, accepted, owner, lease)?,
                    Some(digest) if digest != accepted.digest => return Err(conflict(accepted)),
                    Some(_) if state.index.open(&accepted.run).is_some() => {
                        return Ok(Acceptance::Known(RunState::Unfinished));
                    }
                    Some(_) => {}
                }
            }
            // It has ended. Should it be forgotten before its outcome is read, it is a new run after all.
            if let Some(outcome) = self.outcome_of(&accepted.run)? {
                return Ok(Acceptance::Known(RunState::Finished(outcome)));
            }
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
            let mut location = self.append(&mut state, |buffer| {
                records.iter().try_for_each(|record| {
                    let before = buffer.len();
                    JournalLineRef::Record { run, record }.write_to(buffer)?;
                    lens.push((buffer.len() - before) as u64);
                    Ok(())
                })
            })?;
            for len in lens {
                state.index.record(run, location);
                location.offset += len;
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
        let location = self.append(&mut state, |buffer| {
            JournalLineRef::Finished {
                run,
                digest,
                at,
                outcome,
            }
            .write_to(buffer)
        })?;
        state.index.finish(run, digest, at, location);
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
        let read = |lines: &RunLines| match lines {
            RunLines::Open(locations) => self.read_open(locations).map(Some),
            RunLines::Ended(ended) => self.read_ended(run, *ended),
        };
        let stored = self.look_up(|index| index.lines(run), read);
        let stored = stored.map_err(|error| failed("a turn cannot be read", &self.folder, error))?;
        Ok(stored.flatten())
    }

    async fn unfinished(&self) -> Result<Vec<TurnId>, JournalError> {
        Ok(self.lock().index.unfinished())
    }
}

/// Reads all segments. A line that cannot be read is left where it is, with a warning.
fn load(folder: &DataFolder) -> io::Result<(SegmentWriter, RunIndex)> {
    let numbers = segment::numbers(folder)?;
    let (mut index, mut unreadable) = (RunIndex::default(), 0_u64);
    for number in &numbers {
        segment::read(folder, *number, 0, |location, line| {
            match parse(line) {
                Ok(line) => index.apply(location, &line),
                Err(_) => unreadable += u64::from(!line.trim_ascii().is_empty()),
            }
            true
        })?;
    }
    if unreadable > 0 {
        tracing::warn!(lines = unreadable, folder = %folder.path().display(), "the turn journal has lines that cannot be read");
    }
    Ok((
        SegmentWriter::open(folder, numbers.last().copied().unwrap_or(1))?,
        index,
    ))
}

fn parse(line: &[u8]) -> io::Result<JournalLine> {
    serde_json::from_slice(line).map_err(io::Error::from)
}

fn conflict(accepted: &RunAccepted) -> JournalError {
    JournalError::Conflict {
        session: accepted.key.session.clone(),
        message: accepted.key.message.clone(),
    }
}

fn failed(context: &str, folder: &DataFolder, source: impl Into<BoxError>) -> JournalError {
    JournalError::Io {
        context: format!("{context} ({})", folder.path().display()),
        source: source.into(),
    }
}
