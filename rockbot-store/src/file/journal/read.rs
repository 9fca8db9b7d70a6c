//! Reading runs back from the segments.

use std::io;

use rockbot_core::turn::{JournalError, RunBody, RunState, StoredRun};
use rockbot_core::{Digest, TurnId};

use super::ended_run::EndedRun;
use super::error::failed;
use super::file::FileTurnJournal;
use super::index::{RunIndex, RunLines};
use super::line::{self, JournalLine};
use super::segment::{self, RecordLocation};

impl FileTurnJournal {
    /// Reads all that is stored of a run; `None` if it is unknown or its records have been removed.
    pub(super) fn read_run(&self, run: &TurnId) -> Result<Option<StoredRun>, JournalError> {
        let read = |lines: &RunLines| match lines {
            RunLines::Open(locations) => self.read_open(locations).map(Some),
            RunLines::Ended(ended) => self.read_ended(run, *ended),
        };
        let stored = self.look_up(|index| index.lines(run), read);
        let stored = stored.map_err(|error| failed("a turn cannot be read", &self.folder, error))?;
        Ok(stored.flatten())
    }

    /// Reads the outcome of a finished run, with the digest of its message; `None` if the run has not
    /// finished or its outcome has expired.
    pub(super) fn outcome_of(&self, run: &TurnId) -> Result<Option<(Digest, RunBody)>, JournalError> {
        let outcome = self.look_up(|index| index.ended(run), |ended| self.outcome(run, *ended));
        outcome.map_err(|error| failed("an outcome cannot be read", &self.folder, error))
    }

    fn outcome(&self, run: &TurnId, ended: EndedRun) -> io::Result<(Digest, RunBody)> {
        match line::parse(&segment::read_line(&self.folder, ended.last())?)? {
            JournalLine::Finished {
                run: of,
                digest,
                at,
                outcome,
            } if of == *run && at == ended.at() => Ok((digest, outcome)),
            _ => Err(wrong_line()),
        }
    }

    /// Reads the lines of an unfinished run, whose locations are all in the index.
    fn read_open(&self, locations: &[RecordLocation]) -> io::Result<StoredRun> {
        let mut lines = locations
            .iter()
            .map(|location| line::parse(&segment::read_line(&self.folder, *location)?));
        let Some(JournalLine::Accepted(accepted)) = lines.next().transpose()? else {
            return Err(wrong_line());
        };
        let records = lines.filter_map(|line| match line {
            Ok(JournalLine::Record { record, .. }) => Some(Ok(record)),
            Ok(JournalLine::Accepted(_) | JournalLine::Finished { .. }) => None,
            Err(error) => Some(Err(error)),
        });
        let records = records.collect::<Result<_, _>>()?;
        Ok(StoredRun::new(accepted, records, RunState::Unfinished))
    }

    /// Reads the lines of a finished run as far as they have not been removed.
    ///
    /// The index keeps the first and the last location only, since finished runs are many and
    /// rarely read. The records stand between them, among the records of other runs.
    fn read_ended(&self, run: &TurnId, ended: EndedRun) -> io::Result<Option<StoredRun>> {
        let mut accepted = None;
        let mut records = Vec::new();
        let first = ended.first();
        let last = ended.last();
        let between = first.segment..=last.segment;
        for number in segment::numbers(&self.folder)?
            .into_iter()
            .filter(|number| between.contains(number))
        {
            let from = if number == first.segment { first.offset } else { 0 };
            segment::read(&self.folder, number, from, |location, line| {
                match line::parse(line) {
                    Ok(JournalLine::Accepted(line)) if line.run == *run && accepted.is_none() => accepted = Some(line),
                    Ok(JournalLine::Record { run: of, record }) if of == *run => records.push(record),
                    _ => {}
                }
                location < last
            })?;
        }
        let state = RunState::Finished(self.outcome(run, ended)?.1);
        Ok(accepted.map(|accepted| StoredRun::new(accepted, records, state)))
    }

    /// Finds a location in the index and reads the files at it.
    ///
    /// The files are read without the lock, so that writers do not wait for it; the lines may move or
    /// go away meanwhile. That is rare and detected by the compaction counter, as in optimistic
    /// concurrency: then the lookup runs once more, now under the lock, which rules out another move.
    fn look_up<L, T>(
        &self,
        find: impl Fn(&RunIndex) -> Option<L>,
        read: impl Fn(&L) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        let (location, compactions) = {
            let state = self.lock();
            (find(&state.index), state.compactions)
        };
        let Some(location) = location else { return Ok(None) };
        let value = read(&location);
        let state = self.lock();
        if state.compactions == compactions {
            return value.map(Some);
        }
        find(&state.index).map(|location| read(&location)).transpose()
    }
}

fn wrong_line() -> io::Error {
    io::Error::other("the index of the journal points at another line; was the file changed by another program?")
}
