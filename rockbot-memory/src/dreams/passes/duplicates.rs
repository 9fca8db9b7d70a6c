//! Folds memories with the same words into one. Asks no model.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use rockbot_core::store::{MemoryEntry, StoreError};
use rockbot_store::kit::blocking;

use super::super::clusters::kind;
use super::super::pass_context::PassContext;
use super::super::plan::DreamChange;
use super::super::replay::is_protected;

/// Maximum number of memories that are folded in one cycle. The other memories follow in the next
/// cycle.
const MAX_FOLDED: usize = 1_000;

pub(super) async fn run(cx: &mut PassContext<'_>) -> Result<(), StoreError> {
    let entries = cx.live_memories().await?;
    // Off the runtime's threads, as in all passes: a principal may have many memories.
    let (folded, changes) = blocking(move || Ok(folds(entries))).await?;
    cx.draft(format!("fold {folded} duplicates"), changes, None);
    Ok(())
}

/// Returns the number of memories to fold, and the changes that do it.
fn folds(entries: Vec<Arc<MemoryEntry>>) -> (usize, Vec<DreamChange>) {
    let mut groups: BTreeMap<_, Vec<Arc<MemoryEntry>>> = BTreeMap::new();
    for entry in entries {
        // Texts of different trust stay apart: neither text may raise or replace the other.
        let key = (kind(&entry.provenance), entry.wording());
        groups.entry(key).or_default().push(entry);
    }
    let mut changes = Vec::new();
    let mut folded = 0;
    for mut group in groups.into_values() {
        group.truncate(MAX_FOLDED - folded + 1);
        if group.len() > 1 {
            folded += group.len() - 1;
            changes.extend(fold(&group));
        }
    }
    (folded, changes)
}

/// Returns the changes that fold a group into its best member: a protected memory, else the
/// oldest.
fn fold(group: &[Arc<MemoryEntry>]) -> Vec<DreamChange> {
    let rank = |entry: &&Arc<MemoryEntry>| {
        (
            is_protected(entry),
            Reverse(entry.created_at),
            Reverse(entry.id.clone()),
        )
    };
    let Some(kept) = group.iter().max_by_key(rank) else {
        return Vec::new();
    };
    let mut after = (**kept).clone();
    let others = || group.iter().filter(|other| other.id != kept.id);
    others().for_each(|other| after.reinforce(other));
    let reinforce = DreamChange::Reinforce {
        before: Box::new((**kept).clone()),
        after: Box::new(after),
    };
    let supersede = others().map(|other| DreamChange::Supersede {
        id: other.id.clone(),
        content: other.content.clone(),
        by: kept.id.clone(),
        reason: "the same words".to_owned(),
    });
    std::iter::once(reinforce).chain(supersede).collect()
}
