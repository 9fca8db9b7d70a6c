//! The outputs of a wisp in working memory, under `wisp/ID`.

use std::time::Duration;

use rockbot_core::CallContext;
use rockbot_core::content::Provenance;
use rockbot_core::store::{StorePath, WorkingMemory, WorkingNote};

use super::assignment::Assignment;
use super::progress::Progress;

/// Time that outputs and summaries of batches are kept.
pub(super) const TTL: Duration = Duration::from_secs(60 * 60);

/// Category of outputs.
const CATEGORY: &str = "wisp-output";

/// Saves the newest output. The same output is saved under the same key, also after a restart.
pub(super) async fn save(
    memory: Option<&dyn WorkingMemory>,
    cx: &CallContext,
    assignment: &Assignment,
    progress: &Progress<'_>,
) {
    let (Some(memory), Some((step, text))) = (memory, progress.completed().last()) else {
        return;
    };
    let Ok(key) = assignment.key(&format!("{step}/output")) else {
        return;
    };
    let note = WorkingNote::new(key, text, Provenance::labelled("wisp", &progress.label))
        .with_ttl(TTL)
        .with_category(StorePath::new(CATEGORY).ok());
    if let Err(error) = memory.put(cx.principal(), vec![note]).await {
        tracing::warn!(wisp = assignment.id, %error, "output of a step not saved");
    }
}
