//! The in-memory index of runs and the locations of their lines.

use std::collections::{BTreeMap, HashMap};

use rockbot_core::support::DigestMap;
use rockbot_core::{Digest, Timestamp, TurnId};

use super::ended_run::EndedRun;
use super::head::LineHead;
use super::run_hash::RunHash;
use super::segment::RecordLocation;

/// Retention period of the outcomes that answer redelivered messages, in milliseconds: one day,
/// which is longer than a broker keeps trying.
pub(super) const OUTCOME_RETENTION_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// Number of lines that most runs have.
const USUAL_LINES: usize = 8;

/// The runs of a journal.
///
/// Unfinished runs have all their locations, since a resume reads every line. Finished runs have
/// the first and the last location: there may be many finished runs, and mostly only their
/// outcome is read.
#[derive(Debug, Default)]
pub(super) struct RunIndex {
    open: DigestMap<RunHash, OpenRun>,
    ended: DigestMap<RunHash, EndedRun>,
    /// The unfinished runs in the order of their acceptance. They are resumed in this order.
    order: BTreeMap<u64, TurnId>,
    /// Number of acceptances so far, the next key of `order`.
    accepted: u64,
}

/// An unfinished run.
#[derive(Debug)]
pub(super) struct OpenRun {
    pub(super) digest: Digest,
    /// The locations of its lines, the acceptance first.
    pub(super) lines: Vec<RecordLocation>,
    order: u64,
}

/// The state of a known run.
#[derive(Debug, Clone, Copy)]
pub(super) enum RunStatus {
    /// The run has not finished; the digest is the digest of its message.
    Open(Digest),
    /// The run has finished. Its last line has the digest.
    Ended,
}

/// The locations of a run's lines.
#[derive(Debug)]
pub(super) enum RunLines {
    /// All locations of an unfinished run.
    Open(Vec<RecordLocation>),
    /// The first and the last location of a finished run.
    Ended(EndedRun),
}

impl RunIndex {
    /// Applies a line that was read from a segment. Lines of runs without an acceptance are ignored:
    /// it was unreadable, or its segment has been removed.
    pub(super) fn apply(&mut self, location: RecordLocation, head: LineHead) {
        match head {
            // A repeated acceptance must not reset a run: it would lose its records and repeat their acts.
            LineHead::Accepted { run, .. } if self.open.contains_key(&RunHash::from(&run)) => {}
            LineHead::Accepted { run, digest } => self.accept(&run, digest, location),
            LineHead::Record { run } => self.append(run, [location]),
            LineHead::Finished { run, at } => self.end(run, at, location),
            LineHead::Ended { run, ended } => self.add_ended(run, ended),
        }
    }

    /// Adds an unfinished run.
    pub(super) fn accept(&mut self, run: &TurnId, digest: Digest, location: RecordLocation) {
        let order = self.accepted;
        self.accepted += 1;
        let mut lines = Vec::with_capacity(USUAL_LINES);
        lines.push(location);
        let open = OpenRun { digest, lines, order };
        self.open.insert(run.into(), open);
        self.order.insert(order, run.clone());
    }

    /// Adds the locations of records to an unfinished run.
    pub(super) fn record(&mut self, run: &TurnId, locations: impl IntoIterator<Item = RecordLocation>) {
        self.append(run.into(), locations);
    }

    fn append(&mut self, run: RunHash, locations: impl IntoIterator<Item = RecordLocation>) {
        if let Some(open) = self.open.get_mut(&run) {
            open.lines.extend(locations);
        }
    }

    /// Turns an unfinished run into a finished one.
    pub(super) fn finish(&mut self, run: &TurnId, at: Timestamp, location: RecordLocation) {
        self.end(run.into(), at, location);
    }

    fn end(&mut self, run: RunHash, at: Timestamp, finished: RecordLocation) {
        let open = self.open.remove(&run);
        let first = open.as_ref().and_then(|open| open.lines.first().copied());
        if let Some(open) = open {
            self.order.remove(&open.order);
        }
        self.ended
            .insert(run, EndedRun::new(first.unwrap_or(finished), finished, at));
    }

    fn add_ended(&mut self, run: RunHash, ended: EndedRun) {
        match self.open.contains_key(&run) {
            // An earlier segment has its beginning.
            true => self.end(run, ended.at(), ended.last()),
            false => drop(self.ended.insert(run, ended)),
        }
    }

    /// Returns the locations of a run's lines.
    pub(super) fn lines(&self, run: &TurnId) -> Option<RunLines> {
        let open = self.open(run).map(|open| RunLines::Open(open.lines.clone()));
        open.or_else(|| self.ended(run).map(RunLines::Ended))
    }

    /// Returns the state of a run; `None` if it is unknown.
    pub(super) fn status(&self, run: &TurnId) -> Option<RunStatus> {
        let run = RunHash::from(run);
        let open = self.open.get(&run).map(|open| RunStatus::Open(open.digest));
        open.or_else(|| self.ended.contains_key(&run).then_some(RunStatus::Ended))
    }

    pub(super) fn open(&self, run: &TurnId) -> Option<&OpenRun> {
        self.open.get(&run.into())
    }

    pub(super) fn ended(&self, run: &TurnId) -> Option<EndedRun> {
        self.ended.get(&run.into()).copied()
    }

    /// Returns the unfinished runs, oldest first.
    pub(super) fn unfinished(&self) -> Vec<TurnId> {
        self.order.values().cloned().collect()
    }

    /// Drops the outcomes older than the retention period. Returns the first segment that a remaining
    /// one needs.
    pub(super) fn expire(&mut self, now: Timestamp) -> Option<u32> {
        self.ended
            .retain(|_, ended| now.as_millis().saturating_sub(ended.at().as_millis()) < OUTCOME_RETENTION_MILLIS);
        self.ended.values().map(EndedRun::first_segment).min()
    }

    /// Returns the locations of unfinished runs in `segment`, in their order there.
    pub(super) fn open_in(&self, segment: u32) -> Vec<RecordLocation> {
        let lines = self.open.values().flat_map(|run| &run.lines).copied();
        let mut locations: Vec<_> = lines.filter(|location| location.segment == segment).collect();
        locations.sort_unstable();
        locations
    }

    /// Replaces each location in `from` by the location at the same position in `to`.
    pub(super) fn relocate(&mut self, from: &[RecordLocation], to: &[RecordLocation]) {
        let moved: HashMap<_, _> = from.iter().zip(to).collect();
        for location in self.open.values_mut().flat_map(|run| &mut run.lines) {
            if let Some(to) = moved.get(location) {
                *location = **to;
            }
        }
    }
}
