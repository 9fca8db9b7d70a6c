//! The receipt of a batch of workers: the findings of each worker, and the keys of longer
//! results.

use std::fmt::Write as _;
use std::time::Duration;

use rockbot_core::CallContext;
use rockbot_core::content::Provenance;
use rockbot_core::store::{StorePath, WorkingMemory, WorkingNote};
use rockbot_core::support::one_line;

use super::batch::Ended;

/// Maximum length of findings that stand in the receipt, in characters.
const MAX_INLINE: usize = 4_000;

/// Maximum number of keys that the receipt names for a worker.
const MAX_KEYS: usize = 20;

/// Time that results are kept in working memory.
const TTL: Duration = Duration::from_secs(60 * 60);

/// A worker of a batch.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) id: String,
    pub(super) description: String,
    /// Key of the worker's result.
    pub(super) key: StorePath,
}

/// Saves the results and returns the receipt, failures first.
pub(super) async fn write(
    workers: &[Worker],
    ended: &[Ended],
    memory: Option<&dyn WorkingMemory>,
    cx: &CallContext,
) -> String {
    let failed = ended.iter().filter(|ended| !ended.is_complete()).count();
    let mut text = headline(workers.len(), failed);
    let both = || workers.iter().zip(ended);
    let (done, undone): (Vec<_>, Vec<_>) = both().partition(|(_, ended)| ended.is_complete());
    for (worker, ended) in undone.into_iter().chain(done) {
        let outcome = match ended.limit {
            Some(limit) => format!("stopped early: the {limit} was used up"),
            None if ended.is_unfinished => "ended in the middle of its work".to_owned(),
            None if ended.is_answer => "ok".to_owned(),
            None => "failed".to_owned(),
        };
        let description: String = one_line(&worker.description).chars().take(80).collect();
        let _ = write!(text, "\n\n## {} [{outcome}] {description}\n", worker.id);
        let is_saved = save(worker, ended, memory, cx).await;
        text.push_str(&findings(worker, &ended.text, is_saved));
        if !ended.calls.is_empty() {
            let _ = write!(text, "\nCalls: {}", ended.calls);
        }
        let keys = keys(worker, memory, cx).await;
        if !keys.is_empty() {
            let _ = write!(text, "\nIn working memory: `{}`", keys.join("`, `"));
        }
    }
    text
}

fn headline(all: usize, failed: usize) -> String {
    match failed {
        0 => format!("{all} worker(s) succeeded."),
        failed if failed == all => format!("ALL {all} WORKERS FAILED."),
        failed => format!("PARTIAL FAILURE: {failed} of {all} workers failed."),
    }
}

/// Returns the findings, cut to the maximum length.
fn findings(worker: &Worker, text: &str, is_saved: bool) -> String {
    let Some((end, _)) = text.char_indices().nth(MAX_INLINE) else {
        return text.to_owned();
    };
    let rest = if is_saved {
        format!("the whole is in working memory, `{}`", worker.key)
    } else {
        format!("the rest of {} bytes is lost", text.len())
    };
    format!("{}…\n[{rest}]", &text[..end])
}

/// Saves the result under its key. Returns `true` if the result is saved.
async fn save(worker: &Worker, ended: &Ended, memory: Option<&dyn WorkingMemory>, cx: &CallContext) -> bool {
    let Some(memory) = memory.filter(|_| ended.is_answer) else {
        return false;
    };
    let from = Provenance::labelled("agent", &ended.label);
    let note = WorkingNote::new(worker.key.clone(), &*ended.text, from).with_ttl(TTL);
    let saved = memory.put(cx.principal(), vec![note]).await;
    if let Err(error) = &saved {
        tracing::warn!(worker = worker.id, %error, "result of a worker not saved");
    }
    saved.is_ok()
}

/// Returns the keys of all entries that the worker left in working memory.
async fn keys(worker: &Worker, memory: Option<&dyn WorkingMemory>, cx: &CallContext) -> Vec<String> {
    let (Some(memory), Ok(namespace)) = (memory, StorePath::new(worker.key.namespace())) else {
        return Vec::new();
    };
    let entries = memory.list(cx.principal(), Some(&namespace)).await.unwrap_or_default();
    let keys = entries.iter().map(|entry| entry.key.to_string());
    keys.take(MAX_KEYS).collect()
}
