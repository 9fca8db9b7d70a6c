//! The comparison of two reports, and how much of the difference may be chance.

use std::fmt;

use crate::report::{CaseResult, Report};

/// A comparison of two reports, case by case.
///
/// As text it names the cases that changed, and says how often chance alone makes such a
/// difference. A change that chance makes in more than one of twenty comparisons shows nothing:
/// more cases or more runs are needed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// The cases that both reports have, by name.
    pub cases: Vec<ComparedCase>,
    /// The cases that only the earlier report has.
    pub gone: Vec<String>,
    /// The cases that only the later report has.
    pub new: Vec<String>,
}

/// A case in two reports.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ComparedCase {
    /// The id of the case.
    pub case: String,
    /// The share of its runs that passed before, from 0 to 1.
    pub before: f64,
    /// The share of its runs that passed after, from 0 to 1.
    pub after: f64,
}

impl Report {
    /// Compares this report with an earlier report of the same cases.
    pub fn compare(&self, before: &Self) -> Comparison {
        Comparison::new(before, self)
    }
}

impl Comparison {
    fn new(before: &Report, after: &Report) -> Self {
        let (before, after) = (before.by_case(), after.by_case());
        let share = |runs: &[&CaseResult]| {
            let passed = runs.iter().filter(|run| run.is_passed()).count();
            passed as f64 / runs.len() as f64
        };
        let both = after.iter().filter_map(|(case, runs)| {
            let earlier = before.get(case)?;
            Some(ComparedCase {
                case: (*case).to_owned(),
                before: share(earlier),
                after: share(runs),
            })
        });
        let missing =
            |these: &std::collections::BTreeMap<&str, Vec<&CaseResult>>, name: &&&str| !these.contains_key(**name);
        Self {
            cases: both.collect(),
            gone: before
                .keys()
                .filter(|name| missing(&after, name))
                .map(|name| (*name).to_owned())
                .collect(),
            new: after
                .keys()
                .filter(|name| missing(&before, name))
                .map(|name| (*name).to_owned())
                .collect(),
        }
    }

    /// Returns the number of cases that passed in more of their runs than before.
    pub fn better(&self) -> usize {
        self.cases.iter().filter(|case| case.after > case.before).count()
    }

    /// Returns the number of cases that passed in fewer of their runs than before.
    pub fn worse(&self) -> usize {
        self.cases.iter().filter(|case| case.after < case.before).count()
    }

    /// Returns how often chance alone makes a difference like this, or a larger one, from 0 to 1 (the
    /// sign test over the cases that changed).
    ///
    /// ```
    /// use rockbot_eval::{CaseResult, Report};
    ///
    /// let report = |passes: bool| {
    ///     let results = (0..8).map(|case| CaseResult::new(format!("case {case}"), 1));
    ///     Report::new(results.map(|result| if passes { result } else { result.with_failures(["no answer"]) }))
    /// };
    /// let compared = report(true).compare(&report(false));
    /// assert_eq!((compared.better(), compared.worse()), (8, 0));
    /// assert_eq!(format!("{:.4}", compared.chance()), "0.0078");
    /// ```
    pub fn chance(&self) -> f64 {
        let (better, worse) = (self.better(), self.worse());
        let number = better + worse;
        let mut tail = 0.0;
        let mut ln_ways = 0.0;
        for fewer in 0..=better.min(worse) {
            if fewer > 0 {
                ln_ways += ((number - fewer + 1) as f64 / fewer as f64).ln();
            }
            tail += (ln_ways - number as f64 * std::f64::consts::LN_2).exp();
        }
        (2.0 * tail).min(1.0)
    }

    /// Returns `true` if more cases got worse than better, and chance makes such a difference in fewer
    /// than one of twenty comparisons.
    pub fn is_worse(&self) -> bool {
        self.worse() > self.better() && self.chance() < 0.05
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changed = self.cases.iter().filter(|case| case.before != case.after);
        for case in changed {
            let (before, after) = (100.0 * case.before, 100.0 * case.after);
            let word = if after > before { "better" } else { "worse" };
            writeln!(f, "{word}: {} ({before:.0} % -> {after:.0} %)", case.case)?;
        }
        for (word, names) in [("only before", &self.gone), ("only now", &self.new)] {
            if !names.is_empty() {
                writeln!(f, "{word}: {}", names.join(", "))?;
            }
        }
        let (better, worse) = (self.better(), self.worse());
        let same = self.cases.len() - better - worse;
        write!(f, "{better} cases better, {worse} worse, {same} the same. ")?;
        let chance = 100.0 * self.chance();
        if better + worse == 0 {
            write!(f, "Nothing changed.")
        } else if chance < 5.0 {
            write!(
                f,
                "Chance alone makes such a difference in {chance:.1} % of comparisons: it is real."
            )
        } else {
            write!(
                f,
                "Chance alone makes such a difference in {chance:.0} % of comparisons: it shows nothing."
            )
        }
    }
}
