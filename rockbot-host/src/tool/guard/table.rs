//! The guarded tools of one registry snapshot, and the models' view of them.

use std::sync::{Arc, OnceLock};

use rockbot_core::ToolName;
use rockbot_core::support::FoldMap;
use rockbot_core::tool::{ToolEntry, ToolInvokeResponse, ToolSnapshot, ToolView};
use rockbot_core::trust::Label;

use super::guarded_tool::GuardedTool;
use crate::tool::activation::{Activated, activation_tool, group_of};

/// Namespaces of models' own formats, which some servers leave before the names of native calls.
const NAMESPACES: [&str; 3] = ["functions.", "default_api.", "tools."];

/// The guarded tools of one registry snapshot.
#[derive(Debug, Default)]
pub(in crate::tool) struct ToolTable {
    pub(super) snapshot: Arc<ToolSnapshot>,
    tools: FoldMap<ToolName, Arc<GuardedTool>>,
    /// The tool that activates groups of tools, where there are some; it is among `tools`, too.
    activation: Option<Arc<GuardedTool>>,
    /// `true` if a model does not see all tools.
    hides: bool,
    /// The label of the tools' descriptions. The descriptions of groups count, too: a model sees
    /// their names.
    pub(in crate::tool) text: Label,
    /// The views while no group is active, without and with a task list. Each is written once.
    views: [OnceLock<ToolView>; 2],
}

impl ToolTable {
    /// Creates the table of `snapshot`; `guarded` makes its tools. With `on_demand` models see
    /// tools by their exposure, else all.
    pub(super) fn new(
        snapshot: Arc<ToolSnapshot>,
        on_demand: bool,
        guarded: impl Fn(&Arc<ToolEntry>) -> Arc<GuardedTool>,
    ) -> Self {
        let named = |tool: Arc<GuardedTool>| (tool.entry.registration().name.clone(), tool);
        let mut tools: FoldMap<_, _> = snapshot.entries().iter().map(&guarded).map(named).collect();
        let hides = on_demand && snapshot.entries().iter().any(|entry| !entry.exposure().is_always());
        let activation = hides.then(|| activation_tool(&snapshot)).flatten();
        let activation = activation.as_ref().map(guarded);
        tools.extend(activation.iter().cloned().map(named));
        Self {
            text: text_label(&snapshot),
            snapshot,
            tools,
            activation,
            hides,
            views: Default::default(),
        }
    }

    /// Returns the tool with exactly this name.
    pub(super) fn exactly(&self, name: &ToolName) -> Option<&Arc<GuardedTool>> {
        self.tools.get(name)
    }

    /// Returns the tool with this name, or with the name after a namespace of a model's own.
    pub(super) fn named(&self, name: &ToolName) -> Option<Arc<GuardedTool>> {
        let inner = || NAMESPACES.iter().find_map(|space| name.as_str().strip_prefix(space));
        let tool = self.tools.get(name);
        tool.or_else(|| self.tools.get(inner()?)).cloned()
    }

    /// Returns the view of a model while the groups `active` are active, with `task_tools` after
    /// the tools that are always shown.
    pub(in crate::tool) fn view(&self, task_tools: Option<&Arc<ToolSnapshot>>, active: &[ToolName]) -> ToolView {
        let view = self.views[usize::from(task_tools.is_some())].get_or_init(|| {
            let tools = if self.hides {
                ToolView::default().extended_by(self.snapshot.generation(), self.exposed(&[]))
            } else {
                self.snapshot.view().clone()
            };
            match task_tools.filter(|_| !tools.is_empty()) {
                Some(task_tools) => tools.followed_by(task_tools),
                None => tools,
            }
        });
        if self.hides && !active.is_empty() {
            view.extended_by(self.snapshot.generation(), self.snapshot.of_groups(active))
        } else {
            view.clone()
        }
    }

    /// Returns `view` followed by the tools of this table that it lacks, while the groups `active`
    /// are active.
    pub(in crate::tool) fn extended(&self, view: &ToolView, active: &[ToolName]) -> ToolView {
        if self.hides {
            view.extended_by(self.snapshot.generation(), self.exposed(active))
        } else {
            view.extended(&self.snapshot)
        }
    }

    /// Returns the groups and tools that a call that ended has activated.
    pub(in crate::tool) fn activated(&self, ended: &ToolInvokeResponse, arguments: &str) -> Activated {
        let tool = self.tools.get(&ended.tool_name).filter(|_| self.hides);
        let Some(tool) = tool else {
            return Activated::default();
        };
        let is_own = self.activation.as_ref().is_some_and(|own| Arc::ptr_eq(own, tool));
        let groups = match (ended.is_error, is_own) {
            (true, _) => Vec::new(),
            (false, true) => group_of(arguments).into_iter().collect(),
            (false, false) => {
                let of_tool = &tool.entry.registration().hints.activates;
                of_tool.iter().chain(&ended.activates).cloned().collect()
            }
        };
        Activated { is_own, groups }
    }

    /// Returns the tools that a model sees while the groups `active` are active.
    fn exposed<'a>(&'a self, active: &'a [ToolName]) -> impl Iterator<Item = &'a Arc<ToolEntry>> {
        let activation = self.activation.iter().map(|tool| &tool.entry);
        let always = self.snapshot.exposed(&[]);
        let of_groups = self.snapshot.of_groups(active);
        always.chain(activation).chain(of_groups)
    }
}

/// Returns the label of the descriptions that are outside text.
fn text_label(snapshot: &ToolSnapshot) -> Label {
    let mut text = Label::HOST;
    let registrations = snapshot.entries().iter().map(|entry| entry.registration());
    for registration in registrations.filter(|registration| registration.hints.outside_text) {
        text.join(&Label::untrusted(&format!("tools:{}", registration.source)));
    }
    text
}
