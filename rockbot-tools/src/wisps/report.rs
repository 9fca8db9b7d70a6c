//! The report of a wisp: the last message of its turn, which the caller of the batch reads.

use std::fmt::Write as _;
use std::time::Duration;

use super::failure::Category;
use super::keep::cut;
use super::progress::{Progress, StepEnd};

/// Maximum length of an output in a report, in bytes. The whole output is in working memory.
const MAX_OUTPUT: usize = 16 << 10;

/// Maximum length of an error in a report, in bytes.
const MAX_ERROR: usize = 2 << 10;

/// The report of a wisp that has ended. Its first line has a fixed form; the rest is for the
/// reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    /// The category of the failure; `None` if the wisp succeeded.
    pub(super) failure: Option<Category>,
    pub(super) completed: usize,
    pub(super) steps: usize,
    /// The failures of the wisp, and its last output.
    pub(super) body: String,
    /// Duration of the wisp. It is not in the text.
    pub(super) took: Duration,
}

impl Report {
    /// Creates the report of a wisp that has ended, or is `stopped` before its end.
    pub(super) fn of(progress: &Progress<'_>, stopped: Option<&str>) -> Self {
        let mut body = String::new();
        let mut failed = None;
        for (step, end) in progress.ended() {
            if let StepEnd::Failed(failure) = end {
                failed = Some(failure.category);
                let message = cut(&failure.message, MAX_ERROR);
                let _ = write!(body, "Step `{}` failed ({}): {message}", step.id, failure.category);
                let goes_on = step
                    .skip_to
                    .as_ref()
                    .map(|target| format!("\nIt went on with step `{target}`."));
                body.push_str(goes_on.as_deref().unwrap_or_default());
                body.push('\n');
            }
        }
        let mut failure = failed.filter(|_| progress.has_failed());
        if let Some(why) = stopped {
            failure = Some(Category::External);
            let _ = writeln!(body, "{why}");
        }
        let completed = progress.completed().count();
        if failure.is_some() {
            let ids: Vec<_> = progress.completed().map(|(id, _)| format!("`{id}`")).collect();
            let ids = if ids.is_empty() {
                "none".to_owned()
            } else {
                ids.join(", ")
            };
            let _ = write!(body, "Steps completed before: {ids}");
        } else if let Some((_, text)) = progress.completed().last() {
            body.push_str(&cut(text, MAX_OUTPUT));
        }
        Self {
            failure,
            completed,
            steps: progress.definition.steps.len(),
            body,
            took: Duration::ZERO,
        }
    }

    /// Creates the report of a wisp that did not run to its end for a reason of the host.
    pub(super) fn failed(category: Category, steps: usize, body: impl Into<String>) -> Self {
        Self {
            failure: Some(category),
            completed: 0,
            steps,
            body: body.into(),
            took: Duration::ZERO,
        }
    }

    /// Returns the text of the report.
    pub(super) fn to_text(&self) -> String {
        let Self {
            completed, steps, body, ..
        } = self;
        match self.failure {
            None => format!("Succeeded: {completed} of {steps} steps.\n{body}"),
            Some(category) => format!("Failed, {category}: {completed} of {steps} steps.\n{body}"),
        }
    }

    /// Parses a report; `None` if the text is no report.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (line, body) = text.split_once('\n').unwrap_or((text, ""));
        let (outcome, counts) = line.split_once(": ")?;
        let failure = match outcome {
            "Succeeded" => None,
            failed => {
                let name = failed.strip_prefix("Failed, ")?;
                Some(Category::ALL.into_iter().find(|category| category.name() == name)?)
            }
        };
        let (completed, steps) = counts.strip_suffix(" steps.")?.split_once(" of ")?;
        Some(Self {
            failure,
            completed: completed.parse().ok()?,
            steps: steps.parse().ok()?,
            body: body.to_owned(),
            took: Duration::ZERO,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written() {
        for failure in [None, Some(Category::Structural), Some(Category::Judgment)] {
            let report = Report {
                failure,
                completed: 2,
                steps: 3,
                body: "a: b\nc".to_owned(),
                took: Duration::ZERO,
            };
            assert_eq!(Report::parse(&report.to_text()), Some(report));
        }
        for other in [
            "",
            "Succeeded",
            "I had to stop because: 1 of 2 steps.",
            "Failed, Sad: 1 of 2 steps.",
        ] {
            assert_eq!(Report::parse(other), None, "{other}");
        }
    }
}
