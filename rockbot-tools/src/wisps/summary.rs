//! The summary of a batch: the text that the calling model reads, and the entry of working memory.

use std::fmt::Write as _;

use rockbot_core::support::one_line;
use serde_json::{Value, json};

use super::assignment::Assignment;
use super::keep::cut;
use super::promote::{MIN_SUCCESSES, SAVE};
use super::report::Report;

/// Maximum length of an output in the entry of working memory, in bytes.
const MAX_OUTPUT: usize = 2_000;

/// Returns the text for the model: partial failure first, then each wisp. `proven` are the ids of
/// wisps that may be kept in a skill from now on.
pub(super) fn text(batch: &str, wisps: &[(Assignment, Report)], proven: &[&str]) -> String {
    let all = wisps.len();
    let failed = wisps.iter().filter(|(_, report)| report.failure.is_some()).count();
    let mut text = match failed {
        0 => format!("{all} wisp(s) completed, all succeeded.\n"),
        failed if failed == all => format!("ALL {all} WISPS FAILED.\n"),
        failed => format!("PARTIAL FAILURE: {failed} of {all} wisps failed; do not run the others again.\n"),
    };
    let (undone, done): (Vec<_>, Vec<_>) = wisps.iter().partition(|(_, report)| report.failure.is_some());
    for (assignment, report) in undone.into_iter().chain(done) {
        let description: String = one_line(&assignment.definition.description).chars().take(80).collect();
        let outcome = match report.failure {
            None => "ok".to_owned(),
            Some(category) => format!("failed: {category}"),
        };
        let Report {
            completed, steps, body, ..
        } = report;
        let id = &assignment.id;
        let _ = write!(
            text,
            "\n## {id} [{outcome}] {description} ({completed} of {steps} steps)\n{body}\n"
        );
    }
    let _ = write!(
        text,
        "\nOutputs of steps are in working memory under `wisp/ID/STEP/output`, the summary under `{}`.",
        key(batch)
    );
    for id in proven {
        let _ = write!(
            text,
            "\nThe wisp `{id}` has succeeded {MIN_SUCCESSES} times in scheduled tasks: {SAVE} keeps it in a skill, if the user \
             agrees."
        );
    }
    text
}

/// Returns the key of the entry.
pub(super) fn key(batch: &str) -> String {
    format!("wisp/batch-{batch}/summary")
}

/// Returns the entry.
pub(super) fn entry(batch: &str, wisps: &[(Assignment, Report)]) -> Value {
    let failed = wisps.iter().filter(|(_, report)| report.failure.is_some()).count();
    let wisps: Vec<_> = wisps
        .iter()
        .map(|(assignment, report)| wisp(assignment, report))
        .collect();
    json!({
        "batchId": batch,
        "total": wisps.len(),
        "succeeded": wisps.len() - failed,
        "failed": failed,
        "wisps": wisps,
    })
}

fn wisp(assignment: &Assignment, report: &Report) -> Value {
    let mut wisp = json!({
        "wispId": assignment.id,
        "description": assignment.definition.description,
        "succeeded": report.failure.is_none(),
        "stepsCompleted": report.completed,
        "stepCount": report.steps,
    });
    let body = cut(&report.body, MAX_OUTPUT);
    match report.failure {
        None => wisp["output"] = body.into(),
        Some(category) => wisp["error"] = json!({"category": category.name(), "message": body}),
    }
    wisp
}
