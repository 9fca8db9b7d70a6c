//! What came of the load.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::arguments::Arguments;
use crate::load::{Answers, note};

/// The figures of a run.
pub(crate) struct Report {
    pub(crate) messages: usize,
    pub(crate) replies: usize,
    /// The time until an answer in milliseconds.
    pub(crate) median: u128,
    pub(crate) longest: u128,
    pub(crate) out_of_order: usize,
    pub(crate) effects: usize,
    pub(crate) repeated: usize,
    pub(crate) kills: usize,
    pub(crate) pauses: usize,
    pub(crate) taken_over: usize,
}

impl Report {
    /// Counts the answers, and the lines of the file of side effects.
    pub(crate) fn of(arguments: &Arguments, answers: &Answers, notes: &str) -> Self {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut last: BTreeMap<&str, usize> = BTreeMap::new();
        let mut out_of_order = 0;
        for line in notes.lines() {
            *seen.entry(line).or_default() += 1;
            if let Some((session, number)) = line.split_once(' ') {
                let number = number.parse().unwrap_or(0);
                let before = last.entry(session).or_default();
                out_of_order += usize::from(number < *before);
                *before = number;
            }
        }
        let mut times: Vec<_> = answers.iter().flatten().flatten().map(Duration::as_millis).collect();
        times.sort_unstable();
        let sent = (0..arguments.sessions).flat_map(|session| (1..=arguments.messages).map(move |n| note(session, n)));
        let effects = sent.filter(|note| seen.contains_key(note.as_str())).count();
        Self {
            messages: arguments.sessions * arguments.messages,
            replies: times.len(),
            median: times.get(times.len() / 2).copied().unwrap_or(0),
            longest: times.last().copied().unwrap_or(0),
            out_of_order,
            effects,
            repeated: seen.values().map(|times| times - 1).sum(),
            kills: 0,
            pauses: 0,
            taken_over: 0,
        }
    }

    /// Returns `true` if each message has its answer, in order, and no side effect happened twice.
    pub(crate) fn is_whole(&self) -> bool {
        self.replies == self.messages && self.out_of_order == 0 && self.repeated == 0
    }

    /// Returns the table.
    pub(crate) fn table(&self) -> String {
        let rows = [
            ("messages", self.messages.to_string()),
            ("replies", self.replies.to_string()),
            ("median time until an answer, ms", self.median.to_string()),
            ("longest time until an answer, ms", self.longest.to_string()),
            ("out of order", self.out_of_order.to_string()),
            ("side effects", self.effects.to_string()),
            ("side effects that happened twice", self.repeated.to_string()),
            ("processes killed", self.kills.to_string()),
            ("processes stopped for longer than a lease", self.pauses.to_string()),
            ("turns taken over", self.taken_over.to_string()),
        ];
        let row = |(name, count): &(&str, String)| format!("| {name} | {count} |\n");
        let rows: String = rows.iter().map(row).collect();
        format!("| what | count |\n|---|---|\n{rows}")
    }
}
