//! The groups of memory tools that a model sees on demand, each with its guide.

use rockbot_core::tool::ToolGroup;

/// The group of the tool that reads skills. It becomes active once there is a skill to read.
pub(crate) const KNOWN_SKILLS: &str = "known-skills";

pub(super) fn memory() -> ToolGroup {
    let summary = "forget or restore memories, set the user's time zone, learn how to use memory well";
    ToolGroup::new("memory", summary).with_guide(include_str!("guides/memory.md"))
}

pub(super) fn skills() -> ToolGroup {
    let summary = "save, edit, delete instructions for tasks that come up again";
    ToolGroup::new("skills", summary).with_guide(include_str!("guides/skills.md"))
}

pub(super) fn working_memory() -> ToolGroup {
    let summary = "keep and find notes for minutes to days";
    ToolGroup::new("working-memory", summary).with_guide(include_str!("guides/working_memory.md"))
}
