//! The groups of tools that are active in the conversation of a turn.

use rockbot_core::{CallId, ToolName};

use super::Turn;

/// The active groups, and the calls that activated some by the host's own tool.
#[derive(Debug, Clone, Default)]
pub(super) struct Activation {
    /// In the order of their activation, which is the order of their tools in requests.
    groups: Vec<ToolName>,
    /// The results of these calls are the host's words: as a tool's they would lower the content trust.
    own_calls: Vec<CallId>,
}

impl Activation {
    pub(super) fn apply(&mut self, own: Option<&CallId>, groups: &[ToolName]) {
        self.own_calls.extend(own.cloned());
        self.add(groups);
    }

    /// Adds the groups that are not active yet.
    pub(super) fn add(&mut self, groups: &[ToolName]) {
        for group in groups {
            if !self.groups.contains(group) {
                self.groups.push(group.clone());
            }
        }
    }
}

impl Turn {
    /// Returns the groups of tools that are active, in the order of their activation.
    pub(crate) fn active_tools(&self) -> &[ToolName] {
        &self.activation.groups
    }

    /// Returns `true` for a call of the host's own tool that activates groups.
    pub(crate) fn is_activation(&self, call: &CallId) -> bool {
        self.activation.own_calls.contains(call)
    }
}
