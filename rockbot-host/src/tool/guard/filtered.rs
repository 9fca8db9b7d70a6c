//! The tables of turns that have some of the host's tools.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::tool::{ToolEntry, ToolFilter};

use super::guarded_tool::GuardedTool;
use super::table::ToolTable;

/// Maximum number of tables that are kept. Few kinds of turns have a filter, and many turns of
/// one kind run.
const MAX_TABLES: usize = 16;

/// The tables of the filters that turns had of late, each of one snapshot of the registry.
#[derive(Debug, Default)]
pub(super) struct FilteredTables(Mutex<VecDeque<(Arc<ToolFilter>, Arc<ToolTable>)>>);

impl FilteredTables {
    /// Returns the table of the tools of `all` that `filter` allows.
    ///
    /// The tools are shared with `all`, and so are their permits. `guarded` makes the tool that
    /// activates groups.
    pub(super) fn of(
        &self,
        filter: &Arc<ToolFilter>,
        all: &ToolTable,
        on_demand: bool,
        guarded: impl Fn(&Arc<ToolEntry>) -> Arc<GuardedTool>,
    ) -> Arc<ToolTable> {
        // No code that can panic runs under the lock but pure functions over the snapshot.
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = all.snapshot.generation();
        tables.retain(|(_, table)| table.snapshot.generation() == generation);
        if let Some((_, table)) = tables.iter().find(|(known, _)| known == filter) {
            return table.clone();
        }
        let snapshot = Arc::new(all.snapshot.filtered(|entry| filter.allows(entry.registration())));
        // Not by its name alone: the tool that activates groups has one name in all tables, and other
        // groups in each.
        let known = |entry: &Arc<ToolEntry>| {
            let known = all.exactly(&entry.registration().name);
            known.filter(|known| Arc::ptr_eq(&known.entry, entry)).cloned()
        };
        let table = ToolTable::new(snapshot, on_demand, |entry| {
            known(entry).unwrap_or_else(|| guarded(entry))
        });
        let table = Arc::new(table);
        tables.push_back((filter.clone(), table.clone()));
        if tables.len() > MAX_TABLES {
            tables.pop_front();
        }
        table
    }
}
