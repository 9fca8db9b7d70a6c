//! The reader of recalled lines, and the figures that its answers give.

use std::collections::BTreeMap;

use super::library::Question;

/// The mark of a memory that rests on a fact which has changed.
const STALE: &str = "may be out of date";

/// Figures of one state of memory, by their names.
#[derive(Debug, Clone, Default)]
pub struct Score(BTreeMap<String, usize>);

impl Score {
    /// Adds to a figure.
    pub(super) fn count(&mut self, name: impl Into<String>, count: usize) {
        *self.0.entry(name.into()).or_default() += count;
    }

    /// Adds the figures of another library.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        other.0.into_iter().for_each(|(name, count)| self.count(name, count));
        self
    }

    /// Adds an answer by the lines `shown`, each with `true` if it is not of an untrusted source. `top`
    /// are the first ten hits of a search.
    pub(super) fn answer(&mut self, question: &Question, shown: &[(String, bool)], top: &[String]) {
        // A line that says of itself that it may be out of date is no answer.
        let holds = |text: &str| text.contains(&question.who) && !text.contains(STALE);
        let counts = |(text, is_trusted): &&(String, bool)| *is_trusted && holds(text);
        let lines: Vec<_> = shown.iter().filter(counts).collect();
        let says = |value: &String| lines.iter().any(|(text, _)| text.contains(value.as_str()));
        let has_present = question.expected.as_ref().is_some_and(says);
        let has_wrong = question.wrong.iter().any(says);
        let is_right = !has_wrong && (has_present || question.expected.is_none());
        for (name, count) in [("questions", 1), ("right", usize::from(is_right))] {
            self.count(name, count);
            self.count(format!("{name}: {}", question.kind), count);
        }
        self.count("contradictions", usize::from(has_present && has_wrong));
        self.count("tokens", shown.iter().map(|(text, _)| text.len()).sum::<usize>() / 4);
        if let Some(value) = &question.expected {
            self.count("values", 1);
            self.count(
                "found",
                usize::from(top.iter().any(|text| text.contains(value.as_str()))),
            );
        }
    }

    fn of(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or_default() as f64
    }

    /// Returns the share of questions with a right answer, in percent.
    pub fn right(&self) -> f64 {
        100.0 * self.of("right") / self.of("questions")
    }

    /// Returns the share of present values among the first ten hits, in percent.
    pub fn recall(&self) -> f64 {
        100.0 * self.of("found") / self.of("values")
    }

    /// Returns the number of injected instructions that became memories of the user.
    pub fn injected(&self) -> usize {
        self.of("injected") as usize
    }

    /// Returns a row of the table: recall, right answers, tokens a question, and for each library
    /// memories, contradictions and injected memories.
    pub fn row(&self) -> String {
        let each = |name| self.of(name) / self.of("libraries");
        format!(
            "{:.1} | {:.1} | {:.0} | {:.0} | {:.1} | {:.1}",
            self.recall(),
            self.right(),
            self.of("tokens") / self.of("questions"),
            each("memories"),
            each("contradictions"),
            each("injected"),
        )
    }

    /// Returns a row of the table of skills: right answers, tokens a question, and skills for each
    /// library.
    pub fn skills(&self) -> String {
        format!(
            "{:.1} | {:.0} | {:.0}",
            self.right(),
            self.of("tokens") / self.of("questions"),
            self.of("memories") / self.of("libraries"),
        )
    }

    /// Returns the right answers and the questions of each kind.
    pub fn kinds(&self) -> String {
        let kinds = self
            .0
            .iter()
            .filter_map(|(name, count)| Some((name.strip_prefix("questions: ")?, count)));
        let kinds = kinds.map(|(kind, all)| format!("{kind} {}/{all}", self.of(&format!("right: {kind}"))));
        kinds.collect::<Vec<_>>().join(", ")
    }
}
