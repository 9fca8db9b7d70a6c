//! The report of an evaluation: a table, JSON, JUnit.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rockbot_core::chat::MicroUsd;
use serde::{Deserialize, Serialize};

use crate::cut::cut;
use crate::subject::Answer;

/// Maximum length of a failure in a table, in characters.
const MAX_CELL: usize = 160;

/// The results of an evaluation, in the order of the dataset.
///
/// As text it is a Markdown table, with the share of runs that passed and how much of it may be
/// chance; as JSON (serde) it is read again by [`Report::read`] and compared with a later report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// The results of all runs of all cases.
    pub results: Vec<CaseResult>,
}

/// The result of one run of a case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CaseResult {
    /// The id of the case.
    pub case: String,
    /// The number of the run, from 1.
    pub run: u32,
    /// A sentence for each expectation that was missed; empty if the run passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// The answers, in order. An answer that is missing is empty, and the last one.
    pub answers: Vec<Answer>,
}

impl CaseResult {
    /// Creates the result of a run that passed, without answers.
    pub fn new(case: impl Into<String>, run: u32) -> Self {
        Self {
            case: case.into(),
            run,
            ..Self::default()
        }
    }

    /// Sets the sentences about missed expectations. Default: none, so the run passed.
    #[must_use]
    pub fn with_failures<T: Into<String>>(mut self, failures: impl IntoIterator<Item = T>) -> Self {
        self.failures = failures.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the answers. Default: none.
    #[must_use]
    pub fn with_answers(mut self, answers: impl IntoIterator<Item = Answer>) -> Self {
        self.answers = answers.into_iter().collect();
        self
    }

    /// Returns `true` if every expectation held.
    pub fn is_passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// Returns the number of tokens of all answers together.
    pub fn tokens(&self) -> u64 {
        self.answers.iter().map(|answer| answer.tokens).sum()
    }

    /// Returns the time of all answers together.
    pub fn time(&self) -> Duration {
        self.answers.iter().map(|answer| answer.time).sum()
    }
}

impl Report {
    /// Creates a report of these results.
    pub fn new(results: impl IntoIterator<Item = CaseResult>) -> Self {
        Self {
            results: results.into_iter().collect(),
        }
    }

    /// Reads a report that was written as JSON.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or holds no report.
    pub fn read(path: impl AsRef<Path>) -> std::io::Result<Self> {
        let text = fs::read(path)?;
        Ok(serde_json::from_slice(&text)?)
    }

    /// Returns the number of runs that passed.
    pub fn passed(&self) -> usize {
        self.results.iter().filter(|result| result.is_passed()).count()
    }

    /// Returns `true` if every run of every case passed, and there was one.
    pub fn is_passed(&self) -> bool {
        !self.results.is_empty() && self.passed() == self.results.len()
    }

    /// Returns the price of all answers together, as far as it is known.
    pub fn cost(&self) -> MicroUsd {
        self.results
            .iter()
            .flat_map(|result| &result.answers)
            .map(|answer| answer.cost)
            .sum()
    }

    /// Returns the lowest and the highest share of passed runs, from 0 to 1, that the subject may really
    /// have: with a confidence of 95 % its share lies between them (Wilson's interval).
    ///
    /// ```
    /// use rockbot_eval::{CaseResult, Report};
    ///
    /// let results = (0..10).map(|run| CaseResult::new("a", run));
    /// let (low, high) = Report::new(results).interval();
    /// assert_eq!((format!("{low:.2}"), format!("{high:.2}")), ("0.72".to_owned(), "1.00".to_owned()));
    /// ```
    pub fn interval(&self) -> (f64, f64) {
        // The quantile of 97.5 % of the normal distribution.
        const Z: f64 = 1.96;
        let number = self.results.len() as f64;
        if number == 0.0 {
            return (0.0, 1.0);
        }
        let share = self.passed() as f64 / number;
        let middle = share + Z * Z / (2.0 * number);
        let spread = Z * (share * (1.0 - share) / number + Z * Z / (4.0 * number * number)).sqrt();
        let scale = 1.0 + Z * Z / number;
        (
            ((middle - spread) / scale).max(0.0),
            ((middle + spread) / scale).min(1.0),
        )
    }

    /// Returns the runs of each case, in the order of their names.
    pub(crate) fn by_case(&self) -> BTreeMap<&str, Vec<&CaseResult>> {
        let mut cases: BTreeMap<&str, Vec<&CaseResult>> = BTreeMap::new();
        for result in &self.results {
            cases.entry(&result.case).or_default().push(result);
        }
        cases
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| case | passed | tokens | seconds | missed |\n|---|---|---|---|---|"
        )?;
        let cases = self.by_case();
        let mut seen = HashSet::new();
        let in_order = self.results.iter().map(|result| result.case.as_str());
        for case in in_order.filter(|case| seen.insert(*case)) {
            writeln!(f, "{}", row(case, &cases[case]))?;
        }
        let (passed, number) = (self.passed(), self.results.len());
        let share = 100.0 * passed as f64 / number.max(1) as f64;
        let (low, high) = self.interval();
        let (low, high) = (100.0 * low, 100.0 * high);
        let tokens: u64 = self.results.iter().map(CaseResult::tokens).sum();
        let cost = self.cost();
        write!(
            f,
            "\n{passed} of {number} runs passed: {share:.1} %, with chance {low:.1} to {high:.1} %. {tokens} tokens, {cost}."
        )
    }
}

/// Returns the row of a case in a table.
fn row(case: &str, runs: &[&CaseResult]) -> String {
    let passed = runs.iter().filter(|run| run.is_passed()).count();
    let tokens: u64 = runs.iter().map(|run| run.tokens()).sum();
    let time: Duration = runs.iter().map(|run| run.time()).sum();
    let missed = runs.iter().flat_map(|run| &run.failures).next();
    let missed = missed.map_or_else(String::new, |failure| cell(failure));
    let (number, seconds) = (runs.len(), time.as_secs_f64());
    format!(
        "| {} | {passed}/{number} | {tokens} | {seconds:.1} | {missed} |",
        cell(case)
    )
}

/// Returns a text as a cell of a table.
fn cell(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    cut(&words.join(" ").replace('|', "\\|"), MAX_CELL)
}
