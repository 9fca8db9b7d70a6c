//! The in-memory index of runs and the locations of their lines.

use std::collections::{BTreeMap, HashMap};

use rockbot_core::support::FoldMap;
use rockbot_core::{Digest, Timestamp, TurnId};

use super::line::JournalLine;
use super::segment::RecordLocation;

/// Retention period of the outcomes that answer redelivered messages, in milliseconds: one day, which is longer than a
/// broker keeps trying.
pub(super) const OUTCOME_RETENTION_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// Number of lines that most runs have.
const USUAL_LINES: usize = 8;

/// The runs of a journal.
///
/// Unfinished runs have all their locations, since a resume reads every line. Finished ones have the first and the
/// last: there may be many of them, and mostly only their outcome is read.
#[derive(Debug, Default)]
pub(super) struct RunIndex {
    open: FoldMap<TurnId, OpenRun>,
    ended: FoldMap<TurnId, EndedRun>,
    /// The unfinished runs in the order of their acceptance, in which they are resumed.
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

/// A finished run.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedRun {
    pub(super) digest: Digest,
    pub(super) accepted: RecordLocation,
    pub(super) finished: RecordLocation,
    pub(super) at: Timestamp,
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
    /// Applies a line that was read from a segment. Lines of runs without an acceptance are ignored: it was
    /// unreadable, or its segment has been removed.
    pub(super) fn apply(&mut self, location: RecordLocation, line: &JournalLine) {
        match line {
            // A repeated acceptance must not reset a run: it would lose its records and repeat their acts.
            JournalLine::Accepted(accepted) if self.open.contains_key(&accepted.run) => {}
            JournalLine::Accepted(accepted) => self.accept(&accepted.run, accepted.digest, location),
            JournalLine::Record { run, .. } => self.record(run, location),
            JournalLine::Finished { run, digest, at, .. } => self.finish(run, *digest, *at, location),
        }
    }

    /// Adds an unfinished run.
    pub(super) fn accept(&mut self, run: &TurnId, digest: Digest, location: RecordLocation) {
        let order = self.accepted;
        self.accepted += 1;
        let mut lines = Vec::with_capacity(USUAL_LINES);
        lines.push(location);
        let open = OpenRun { digest, lines, order };
        self.open.insert(run.clone(), open);
        self.order.insert(order, run.clone());
    }

    /// Adds the location of a record to an unfinished run.
    pub(super) fn record(&mut self, run: &TurnId, location: RecordLocation) {
        if let Some(open) = self.open.get_mut(run) {
            open.lines.push(location);
        }
    }

    /// Turns an unfinished run into a finished one.
    pub(super) fn finish(&mut self, run: &TurnId, digest: Digest, at: Timestamp, location: RecordLocation) {
        let open = self.open.remove(run);
        let accepted = open
            .as_ref()
            .and_then(|open| open.lines.first().copied())
            .unwrap_or(location);
        if let Some(open) = open {
            self.order.remove(&open.order);
        }
        self.ended.insert(
            run.clone(),
            EndedRun {
                digest,
                accepted,
                finished: location,
                at,
            },
        );
    }

    /// Returns the locations of a run's lines.
    pub(super) fn lines(&self, run: &TurnId) -> Option<RunLines> {
        let open = self.open.get(run).map(|open| RunLines::Open(open.lines.clone()));
        open.or_else(|| self.ended(run).map(RunLines::Ended))
    }

    /// Returns the digest of the message that a run was accepted for.
    pub(super) fn digest(&self, run: &TurnId) -> Option<Digest> {
        let open = self.open.get(run).map(|open| open.digest);
        open.or_else(|| self.ended.get(run).map(|ended| ended.digest))
    }

    pub(super) fn open(&self, run: &TurnId) -> Option<&OpenRun> {
        self.open.get(run)
    }

    pub(super) fn ended(&self, run: &TurnId) -> Option<EndedRun> {
        self.ended.get(run).copied()
    }

    /// Returns the unfinished runs, oldest first.
    pub(super) fn unfinished(&self) -> Vec<TurnId> {
        self.order.values().cloned().collect()
    }

    /// Drops the outcomes older than the retention period. Returns the first segment that a remaining one needs.
    pub(super) fn expire(&mut self, now: Timestamp) -> Option<u32> {
        self.ended
            .retain(|_, ended| now.as_millis().saturating_sub(ended.at.as_millis()) < OUTCOME_RETENTION_MILLIS);
        self.ended.values().map(|ended| ended.accepted.segment).min()
    }

    /// Returns the locations of unfinished runs in `segment`, in their order there.
    pub(super) fn open_in(&self, segment: u32) -> Vec<RecordLocation> {
        let lines = self.open.values().flat_map(|run| &run.lines).copied();
        let mut locations: Vec<_> = lines.filter(|location| location.segment == segment).collect();
        locations.sort_unstable();
        locations
    }

    /// Replaces each location in `from` by the one at the same position in `to`.
    pub(super) fn relocate(&mut self, from: &[RecordLocation], to: &[RecordLocation]) {
        let moved: HashMap<_, _> = from.iter().zip(to).collect();
        for location in self.open.values_mut().flat_map(|run| &mut run.lines) {
            if let Some(to) = moved.get(location) {
                *location = **to;
            }
        }
    }
}
