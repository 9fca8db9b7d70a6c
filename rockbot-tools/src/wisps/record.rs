//! Records of wisps that ended: in the log, and as feedback when a corrected definition succeeds.

use rockbot_core::context::Origin;
use rockbot_core::store::{FeedbackEntry, FeedbackSignal};
use rockbot_core::{CallContext, Digest};
use serde_json::json;

use super::assignment::Assignment;
use super::failure::Category;
use super::keep::cut;
use super::log::{Execution, MAX_DEFINITION};
use super::report::Report;
use super::{HostParts, promote};

/// Maximum length of a description in a record, in bytes.
const MAX_DESCRIPTION: usize = 500;

/// Maximum length of an error in a record, in bytes.
const MAX_ERROR: usize = 500;

/// Records a wisp of a batch that has ended. Returns `true` if its definition has proven itself
/// by this run, and may be kept in a skill from now on.
pub(super) async fn record(
    parts: &HostParts,
    batch: &str,
    assignment: &Assignment,
    report: &Report,
    cx: &CallContext,
) -> bool {
    let execution = execution(parts, batch, assignment, report, cx);
    let corrected = corrected(parts, &execution);
    let is_new = parts.log.append(execution.clone());
    if let Some(before) = corrected.filter(|_| is_new) {
        tell(parts, &before, &execution, cx).await;
    }
    let can_be_kept = execution.is_scheduled && execution.definition_body.is_some() && parts.skills.is_some();
    can_be_kept && promote::successes(parts, cx.principal(), &execution.definition_hash) == promote::MIN_SUCCESSES
}

fn execution(parts: &HostParts, batch: &str, assignment: &Assignment, report: &Report, cx: &CallContext) -> Execution {
    let definition = &assignment.definition;
    let description = cut(&definition.description, MAX_DESCRIPTION);
    let len = serde_json::to_string(definition).map_or(usize::MAX, |json| json.len());
    let succeeded = report.failure.is_none();
    // The last run with this description in another batch: the runs of one batch are not successive
    // attempts.
    let before = parts.log.find(cx.principal(), |known| {
        known.session_id == *cx.session() && known.description == description && known.batch_id != batch
    });
    let before = before.filter(|before| !before.succeeded);
    Execution {
        wisp_id: assignment.id.clone(),
        batch_id: batch.to_owned(),
        principal: cx.principal().clone(),
        session_id: cx.session().clone(),
        timestamp: parts.clock.now(),
        description,
        definition_hash: definition.hash(),
        succeeded,
        is_scheduled: cx.origin() == Origin::Scheduled,
        steps_completed: report.completed,
        step_count: report.steps,
        duration_ms: u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
        failure_category: report.failure.map(|failure| failure.name().to_owned()),
        error_message: report.failure.map(|_| cut(&report.body, MAX_ERROR)),
        retry_of: before.map(|before| before.wisp_id),
        definition_body: (succeeded && len <= MAX_DEFINITION).then(|| definition.clone()),
    }
}

/// Returns the earlier wisp whose wrong definition this wisp has corrected.
fn corrected(parts: &HostParts, execution: &Execution) -> Option<Execution> {
    let failed = execution.retry_of.as_ref().filter(|_| execution.succeeded)?;
    let before = parts.log.find(&execution.principal, |known| known.wisp_id == *failed)?;
    let is_structural = before.failure_category.as_deref() == Some(Category::Structural.name());
    (is_structural && before.definition_hash != execution.definition_hash).then_some(before)
}

/// Writes the feedback about a correction. Errors of tools are left out, because they are
/// untrusted.
async fn tell(parts: &HostParts, before: &Execution, after: &Execution, cx: &CallContext) {
    let Some(store) = &parts.feedback else { return };
    let detail = json!({
        "description": after.description,
        "failed": before.wisp_id,
        "corrected": after.wisp_id,
        "category": before.failure_category,
        "definition": after.definition_body,
    });
    let entry = FeedbackEntry::new(
        // The same correction is the same entry, also when the call is recovered.
        Digest::of(["wisp-correction", after.wisp_id.as_str()]).short(),
        after.session_id.clone(),
        FeedbackSignal::WispCorrection,
        format!(
            "A wisp with a wrong definition was corrected, and succeeded with {} steps.",
            after.step_count
        ),
        after.timestamp,
    );
    if let Err(error) = store
        .append(cx.principal(), entry.with_detail(detail.to_string()))
        .await
    {
        tracing::warn!(%error, "correction of a wisp not recorded as feedback");
    }
}
