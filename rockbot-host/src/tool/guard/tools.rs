//! The guarded tools of a host: the table of the registry's newest snapshot, built anew when the
//! registry changes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use rockbot_core::tool::{ToolEntry, ToolFilter, ToolRegistry, ToolSnapshot};
use rockbot_core::{CallContext, ToolName};

use super::filtered::FilteredTables;
use super::guarded_tool::GuardedTool;
use super::table::ToolTable;
use crate::telemetry::MeterBook;
use crate::tool::meters::Meters;
use crate::tool::tasks::task_tools;
use crate::turn::tasks::TaskList;

/// The guarded tools of a host.
#[derive(Debug)]
pub(super) struct GuardedTools {
    pub(super) registry: Arc<dyn ToolRegistry>,
    /// The tools that exist only within a turn with a task list.
    pub(super) of_tasks: Arc<ToolSnapshot>,
    time_limit: Duration,
    /// `true` if models see tools by their exposure, `false` if they see all.
    on_demand: bool,
    /// The newest snapshot of the registry that was seen, with the state of each tool. Read without a
    /// lock.
    table: ArcSwap<ToolTable>,
    /// Held while a new table is built: two tables built at once would give a tool two semaphores,
    /// and so twice its permits.
    rebuilding: Mutex<()>,
    meters: MeterBook<Meters>,
    /// The tables of turns that do not have all tools.
    filtered: FilteredTables,
}

impl GuardedTools {
    /// Creates the guarded tools of `registry`. Tools that state no time limit of their own get
    /// `time_limit`.
    pub(super) fn new(registry: Arc<dyn ToolRegistry>, time_limit: Duration, on_demand: bool) -> Self {
        Self {
            registry,
            of_tasks: task_tools(),
            time_limit,
            on_demand,
            table: ArcSwap::default(),
            rebuilding: Mutex::new(()),
            meters: MeterBook::default(),
            filtered: FilteredTables::default(),
        }
    }

    /// Returns the tool that a call means by `name`. Within a turn with a task list the turn's own
    /// tools win over namesakes in the registry, as they do in the model's view.
    ///
    /// A tool that the filter of the turn excludes does not exist for it.
    pub(super) fn resolve(&self, name: &ToolName, cx: &CallContext) -> Option<Arc<GuardedTool>> {
        let of_turn = cx
            .extension::<TaskList>()
            .and_then(|_| self.of_tasks.find(name.as_str()));
        match of_turn {
            Some(entry) => Some(Arc::new(self.guarded(entry))),
            None => match cx.extension::<Arc<ToolFilter>>() {
                Some(filter) => self.table_of(Some(filter)).named(name),
                None => self.find(name),
            },
        }
    }

    /// Returns the tool of the registry with this name, or with the name after a namespace of a
    /// model's own.
    pub(super) fn find(&self, name: &ToolName) -> Option<Arc<GuardedTool>> {
        // Borrowed, not `newest_table`: this is on the path of each call.
        let table = self.table.load();
        if Arc::ptr_eq(&table.snapshot, &self.registry.snapshot()) {
            return table.named(name);
        }
        self.rebuild().named(name)
    }

    /// Returns the table of the tools that `filter` allows.
    pub(super) fn table_of(&self, filter: Option<&Arc<ToolFilter>>) -> Arc<ToolTable> {
        let all = self.newest_table();
        match filter {
            Some(filter) => self
                .filtered
                .of(filter, &all, self.on_demand, |entry| Arc::new(self.guarded(entry))),
            None => all,
        }
    }

    /// Returns the table of the registry's newest snapshot.
    fn newest_table(&self) -> Arc<ToolTable> {
        let table = self.table.load_full();
        if Arc::ptr_eq(&table.snapshot, &self.registry.snapshot()) {
            table
        } else {
            self.rebuild()
        }
    }

    /// Returns the meters of calls of unknown tools. It is one for all of their names, which are the
    /// model's words, and would be unbounded labels.
    pub(super) fn unknown_meters(&self) -> Arc<Meters> {
        self.meters.of("_unknown", Meters::new)
    }

    /// Builds the table of the registry's newest snapshot. Tools that did not change keep their
    /// permits and meters.
    fn rebuild(&self) -> Arc<ToolTable> {
        // The guarded value is `()`: a panic elsewhere cannot have left it inconsistent.
        let _rebuilding = self.rebuilding.lock().unwrap_or_else(PoisonError::into_inner);
        // Read again under the lock: another caller may have built this table meanwhile.
        let table = self.table.load_full();
        let snapshot = self.registry.snapshot();
        if Arc::ptr_eq(&table.snapshot, &snapshot) {
            return table;
        }
        let guarded = |entry: &Arc<ToolEntry>| {
            let known = table.exactly(&entry.registration().name);
            let unchanged = known.filter(|known| Arc::ptr_eq(&known.entry, entry)).cloned();
            unchanged.unwrap_or_else(|| Arc::new(self.guarded(entry)))
        };
        let table = Arc::new(ToolTable::new(snapshot, self.on_demand, guarded));
        self.table.store(table.clone());
        table
    }

    fn guarded(&self, entry: &Arc<ToolEntry>) -> GuardedTool {
        let meters = self.meters.of(entry.registration().name.as_str(), Meters::new);
        GuardedTool::new(entry, self.time_limit, meters)
    }
}
