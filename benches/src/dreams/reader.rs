//! The reader of recalled lines, and the figures that its answers give.

use std::collections::BTreeMap;

use super::library::Question;

/// A line that recall shows.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) text: String,
    /// `false` for a line that says of itself that it is not to be relied on.
    pub(super) counts: bool,
}

impl Shown {
    pub(super) fn new(text: String) -> Self {
        let counts = !text.contains("not confirmed by the user") && !text.contains("may be out of date");
        Self { text, counts }
    }
}

/// Figures of one state of memory.
#[derive(Debug, Clone, Default)]
pub struct Score {
    questions: usize,
    right: usize,
    /// Right answers and questions of each kind.
    kinds: BTreeMap<&'static str, (usize, usize)>,
    /// Present values.
    answerable: usize,
    found: usize,
    tokens: usize,
    contradictions: usize,
    /// Live memories.
    pub entries: usize,
    /// Injected instructions among the memories that count as the user's.
    pub injected: usize,
    libraries: usize,
}

impl Score {
    pub(super) fn new(entries: usize, injected: usize) -> Self {
        Self {
            entries,
            injected,
            libraries: 1,
            ..Self::default()
        }
    }

    /// Adds an answer by `shown`, of which `top` are the first ten hits of a search.
    pub(super) fn add(&mut self, question: &Question, shown: &[Shown], top: &[String]) {
        let of_person = |line: &&Shown| question.who.as_ref().is_none_or(|who| line.text.contains(who.as_str()));
        let lines: Vec<_> = shown.iter().filter(|line| line.counts).filter(of_person).collect();
        let says = |value: &String| lines.iter().any(|line| line.text.contains(value.as_str()));
        let has_wrong = question.wrong.iter().any(says);
        let is_right = question.expected.iter().all(says) && !has_wrong;
        let is_contradicted = has_wrong && question.expected.iter().any(says);
        let kind = self.kinds.entry(question.kind).or_default();
        kind.0 += usize::from(is_right);
        kind.1 += 1;
        self.questions += 1;
        self.right += usize::from(is_right);
        self.contradictions += usize::from(is_contradicted);
        self.tokens += shown.iter().map(|line| line.text.len()).sum::<usize>() / 4;
        for value in &question.expected {
            self.answerable += 1;
            self.found += usize::from(top.iter().any(|text| text.contains(value.as_str())));
        }
    }

    /// Adds the figures of another library.
    pub fn join(&mut self, other: &Self) {
        self.questions += other.questions;
        self.right += other.right;
        self.answerable += other.answerable;
        self.found += other.found;
        self.tokens += other.tokens;
        self.contradictions += other.contradictions;
        self.entries += other.entries;
        self.injected += other.injected;
        self.libraries += other.libraries;
        for (kind, (right, all)) in &other.kinds {
            let own = self.kinds.entry(kind).or_default();
            own.0 += right;
            own.1 += all;
        }
    }

    /// Returns the share of questions with a right answer, in percent.
    pub fn right(&self) -> f64 {
        percent(self.right, self.questions)
    }

    /// Returns the share of present values among the first ten hits, in percent.
    pub fn recall(&self) -> f64 {
        percent(self.found, self.answerable)
    }

    /// Returns a row of the table: recall, right answers, tokens a question, and for each library
    /// entries, contradictions and injected memories.
    pub fn row(&self) -> String {
        let each = |count: usize| count as f64 / self.libraries.max(1) as f64;
        format!(
            "{:.1} | {:.1} | {} | {:.0} | {:.1} | {:.1}",
            self.recall(),
            self.right(),
            self.tokens / self.questions.max(1),
            each(self.entries),
            each(self.contradictions),
            each(self.injected),
        )
    }

    /// Returns the right answers and the questions of each kind.
    pub fn kinds(&self) -> String {
        let kinds = self
            .kinds
            .iter()
            .map(|(kind, (right, all))| format!("{kind} {right}/{all}"));
        kinds.collect::<Vec<_>>().join(", ")
    }
}

fn percent(part: usize, of: usize) -> f64 {
    100.0 * part as f64 / of.max(1) as f64
}
