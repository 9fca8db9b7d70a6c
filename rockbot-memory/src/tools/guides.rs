//! The guides to the memory tools.

use rockbot_core::tool::StaticGuide;

pub(crate) fn memory() -> StaticGuide {
    let summary = "Remembering facts beyond this conversation, finding, correcting and forgetting them.";
    StaticGuide::new("memory", summary, include_str!("guides/memory.md"))
}

pub(crate) fn working_memory() -> StaticGuide {
    let summary = "Keeping texts for a while: interim results, drafts, what other work of the user handed over.";
    StaticGuide::new("working-memory", summary, include_str!("guides/working_memory.md"))
}

pub(crate) fn skills() -> StaticGuide {
    let summary = "Reading and writing skills: how you do things that come up again.";
    StaticGuide::new("skills", summary, include_str!("guides/skills.md"))
}

pub(crate) fn rules() -> StaticGuide {
    let summary = "Rules that the user gave you for every conversation.";
    StaticGuide::new("rules", summary, include_str!("guides/rules.md"))
}
