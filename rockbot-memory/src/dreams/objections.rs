//! The checks of a plan before it is applied by itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use rockbot_core::store::{MemoryEntry, StoreError};

use super::dreamer::Dreamer;
use super::pass::DreamPass;
use super::plan::{DreamChange, DreamPlan};
use super::replay::{Replay, is_protected};

impl Dreamer {
    /// Returns the reasons why a plan waits for a person.
    pub(super) async fn objections(&self, plan: &DreamPlan) -> Result<Vec<String>, StoreError> {
        /// Maximum number of losses that a plan names.
        const MAX_LOSSES: usize = 5;
        let entries = self.stores.memories(&plan.principal).await?;
        let mut notes = outdated_protected(plan, &entries);
        let queries = self.ledger().queries.get(&plan.principal).cloned().unwrap_or_default();
        let changes = plan.changes.clone();
        let now = self.clock.now();
        // Off the runtime's threads: a principal may have many memories.
        let losses = rockbot_store::kit::blocking(move || {
            let replay = Replay {
                entries: &entries,
                changes: &changes,
                queries: &Vec::from(queries),
                now,
            };
            Ok(replay.losses())
        });
        notes.extend(losses.await?.into_iter().take(MAX_LOSSES));
        if plan.changes.iter().any(is_privileged) {
            notes.push("it changes what the user trusts: only a person may apply it".to_owned());
        }
        Ok(notes)
    }
}

/// Returns remarks on protected memories that a contradiction would put aside: the memory that
/// takes the place does not say the same.
fn outdated_protected(plan: &DreamPlan, entries: &[Arc<MemoryEntry>]) -> Vec<String> {
    if plan.pass != DreamPass::ContradictionSweep {
        return Vec::new();
    }
    let ids: BTreeSet<_> = plan.changes.iter().filter_map(DreamChange::superseded).collect();
    let protected = entries
        .iter()
        .filter(|entry| ids.contains(&entry.id) && is_protected(entry));
    protected
        .map(|entry| format!("`{}` is protected: only a person may put it aside", entry.id))
        .collect()
}

/// Returns `true` for a change that needs the endorsement of a person: a rule, or a skill that
/// would lose trust.
fn is_privileged(change: &DreamChange) -> bool {
    match change {
        DreamChange::Rule { .. } => true,
        DreamChange::Skill {
            before: Some(before),
            after,
            ..
        } => after.provenance.trust < before.provenance.trust,
        _ => false,
    }
}
