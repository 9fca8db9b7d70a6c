//! A record of the lines that conversations have read: a file is overwritten only by a model that
//! has seen all of it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rockbot_core::{CallContext, Digest};

use super::path::FilePath;

/// Maximum number of files of all conversations. A forgotten one must be read again, and no more.
const MAX_ENTRIES: usize = 4_096;

/// Maximum number of separate parts of a file that are remembered.
const MAX_PARTS: usize = 64;

/// The record of a host.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    seen: BTreeMap<Key, Seen>,
    /// The keys in the order of their arrival.
    order: VecDeque<Key>,
}

/// A conversation and a file.
type Key = (String, FilePath);

/// The lines of one version of a file that were shown.
#[derive(Debug)]
struct Seen {
    version: Digest,
    /// Ranges of lines from 0, sorted and apart from each other.
    parts: Vec<Range<usize>>,
}

impl Ledger {
    /// Records that a model was shown these lines of this version.
    pub(super) fn record(&self, cx: &CallContext, path: &FilePath, version: &Digest, lines: Range<usize>) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(cx, path);
        if !entries.seen.contains_key(&key) {
            entries.order.push_back(key.clone());
        }
        let seen = entries.seen.entry(key).or_insert_with(|| Seen {
            version: *version,
            parts: Vec::new(),
        });
        if seen.version != *version {
            *seen = Seen {
                version: *version,
                parts: Vec::new(),
            };
        }
        seen.add(lines);
        while entries.order.len() > MAX_ENTRIES {
            if let Some(oldest) = entries.order.pop_front() {
                entries.seen.remove(&oldest);
            }
        }
    }

    /// Returns `true` if a model was shown all of `lines` lines of this version.
    pub(super) fn has_all(&self, cx: &CallContext, path: &FilePath, version: &Digest, lines: usize) -> bool {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = entries.seen.get(&key(cx, path)).filter(|seen| seen.version == *version);
        seen.is_some_and(|seen| lines == 0 || seen.parts.iter().any(|part| part.start == 0 && part.end >= lines))
    }
}

impl Seen {
    fn add(&mut self, lines: Range<usize>) {
        self.parts.push(lines);
        self.parts.sort_by_key(|part| part.start);
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(self.parts.len());
        for part in self.parts.drain(..) {
            match merged.last_mut() {
                Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
                _ => merged.push(part),
            }
        }
        merged.truncate(MAX_PARTS);
        self.parts = merged;
    }
}

fn key(cx: &CallContext, path: &FilePath) -> Key {
    (format!("{}\n{}", cx.principal(), cx.session()), path.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lines_of_the_present_version_of_the_same_conversation() {
        let ledger = Ledger::default();
        let one = CallContext::new("a");
        let two = CallContext::new("b");
        let path = FilePath::parse("x").unwrap();
        let old = Digest::of(["old"]);
        let new = Digest::of(["new"]);
        ledger.record(&one, &path, &old, 5..10);
        assert!(!ledger.has_all(&one, &path, &old, 10));
        ledger.record(&one, &path, &old, 0..6);
        assert!(ledger.has_all(&one, &path, &old, 10));
        assert!(!ledger.has_all(&one, &path, &old, 11));
        assert!(!ledger.has_all(&two, &path, &old, 10));
        assert!(!ledger.has_all(&one, &path, &new, 10));
        ledger.record(&one, &path, &new, 0..1);
        assert!(!ledger.has_all(&one, &path, &old, 10));
    }

    #[test]
    fn the_oldest_entries_are_forgotten() {
        let ledger = Ledger::default();
        let cx = CallContext::new("a");
        let version = Digest::of(["v"]);
        let path = |number: usize| FilePath::parse(&format!("f{number}")).unwrap();
        (0..=MAX_ENTRIES).for_each(|number| ledger.record(&cx, &path(number), &version, 0..1));
        assert!(!ledger.has_all(&cx, &path(0), &version, 1) && ledger.has_all(&cx, &path(1), &version, 1));
    }
}
