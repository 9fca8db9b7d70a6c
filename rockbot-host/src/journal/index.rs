//! Which lines tell of which run.

use std::collections::{BTreeMap, HashMap};

use rockbot_core::{Digest, Timestamp, TurnId};

use super::line::JournalLine;
use super::segment::RecordLocation;

/// How long the outcome of a finished run answers redeliveries, in milliseconds.
pub(super) const OUTCOME_RETENTION_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// Where everything is.
#[derive(Debug, Default)]
pub(super) struct RunIndex {
    open: HashMap<TurnId, OpenRun>,
    ended: HashMap<TurnId, EndedRun>,
    /// The unfinished runs in the order in which they were accepted.
    order: BTreeMap<u64, TurnId>,
    accepted: u64,
}

/// A run that has not ended.
#[derive(Debug)]
pub(super) struct OpenRun {
    pub(super) digest: Digest,
    /// The lines, the accepted one first.
    pub(super) lines: Vec<RecordLocation>,
    order: u64,
}

/// A run that ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedRun {
    pub(super) digest: Digest,
    pub(super) accepted: RecordLocation,
    pub(super) finished: RecordLocation,
    pub(super) at: Timestamp,
}

/// Where the lines of a run are.
#[derive(Debug)]
pub(super) enum RunLines {
    /// All of them: it has not ended.
    Open(Vec<RecordLocation>),
    /// From the first to the last of them: it has ended.
    Ended(EndedRun),
}

impl RunIndex {
    /// Takes in a line that was read from a segment. A line of a run that nobody accepted is ignored.
    pub(super) fn apply(&mut self, location: RecordLocation, line: &JournalLine) {
        match line {
            // A line that stands twice must not make a run forget what it did: it would do it again.
            JournalLine::Accepted(accepted) if self.open.contains_key(&accepted.run) => {}
            JournalLine::Accepted(accepted) => self.accept(&accepted.run, accepted.digest, location),
            JournalLine::Record { run, .. } => self.record(run, location),
            JournalLine::Finished { run, digest, at, .. } => self.finish(run, *digest, *at, location),
        }
    }

    pub(super) fn accept(&mut self, run: &TurnId, digest: Digest, location: RecordLocation) {
        let order = self.accepted;
        self.accepted += 1;
        let open = OpenRun {
            digest,
            lines: vec![location],
            order,
        };
        self.open.insert(run.clone(), open);
        self.order.insert(order, run.clone());
    }

    pub(super) fn record(&mut self, run: &TurnId, location: RecordLocation) {
        if let Some(open) = self.open.get_mut(run) {
            open.lines.push(location);
        }
    }

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

    /// Where to read what is known of a run.
    pub(super) fn lines(&self, run: &TurnId) -> Option<RunLines> {
        let open = self.open.get(run).map(|open| RunLines::Open(open.lines.clone()));
        open.or_else(|| self.ended(run).map(RunLines::Ended))
    }

    /// The digest under which a run was accepted.
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

    /// The unfinished runs, oldest first.
    pub(super) fn unfinished(&self) -> Vec<TurnId> {
        self.order.values().cloned().collect()
    }

    /// Forgets runs that ended too long ago. Returns the first segment that one of the others needs.
    pub(super) fn expire(&mut self, now: Timestamp) -> Option<u32> {
        self.ended
            .retain(|_, ended| now.as_millis().saturating_sub(ended.at.as_millis()) < OUTCOME_RETENTION_MILLIS);
        self.ended.values().map(|ended| ended.accepted.segment).min()
    }

    /// The lines of unfinished runs in `segment`, in their order there.
    pub(super) fn open_in(&self, segment: u32) -> Vec<RecordLocation> {
        let lines = self.open.values().flat_map(|run| &run.lines).copied();
        let mut locations: Vec<_> = lines.filter(|location| location.segment == segment).collect();
        locations.sort_unstable();
        locations
    }

    /// Takes note that the lines at `from` are now at `to`.
    pub(super) fn relocate(&mut self, from: &[RecordLocation], to: &[RecordLocation]) {
        let moved: HashMap<_, _> = from.iter().zip(to).collect();
        for location in self.open.values_mut().flat_map(|run| &mut run.lines) {
            if let Some(to) = moved.get(location) {
                *location = **to;
            }
        }
    }
}
