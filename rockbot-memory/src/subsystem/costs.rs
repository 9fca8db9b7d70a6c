//! The costs of the parts of [`Memory`] in model calls and tokens.

use rockbot_core::ToolName;
use rockbot_core::subsystem::{Declarations, PartCost};

use super::Memory;
use super::store_choice::StoreChoice;

/// The tools of each part.
const LONG_TERM: [&str; 4] = ["save_memory", "search_memory", "archive_memory", "restore_memory"];
const WORKING: [&str; 7] = [
    "save_to_working_memory",
    "list_working_memory",
    "search_working_memory",
    "edit_working_memory",
    "delete_from_working_memory",
    "get_from_working_memory",
    "search_tool_output",
];
const SKILLS: [&str; 5] = ["get_skill", "save_skill", "edit_skill", "delete_skill", "restore_skill"];
const RULES: [&str; 2] = ["change_rules", "set_timezone"];

impl Memory {
    /// States what each part costs, and which are off.
    pub(super) fn declare_costs(&self, needs: &mut Declarations) {
        let has_long_term = is_on(&self.long_term);
        let has_skills = is_on(&self.skills);
        let embeds = has_long_term && self.embeddings.is_some();
        let costs = [
            part("long-term memory", has_long_term, "`Memory::with_long_term`")
                .with_tools(names(&LONG_TERM))
                .with_model_calls("one for each saved text, in the background"),
            part("embeddings", embeds, "`LLM.Embeddings`")
                .with_model_calls("one of the embedding model for each message and each saved text"),
            part("working memory", is_on(&self.working), "`Memory::with_working`").with_tools(names(&WORKING)),
            part("skills", has_skills, "`Memory::with_skills`")
                .with_tools(names(&SKILLS))
                .with_model_calls("one for each skill that the model saves, in the background"),
            part("rules", is_on(&self.rules), "`Memory::with_rules`").with_tools(names(&RULES)),
            part("feedback store", is_on(&self.feedback), "`Memory::with_feedback`"),
            part(
                "conversation log",
                is_on(&self.conversation_log),
                "`ConversationLog.Enabled`",
            ),
        ];
        costs.into_iter().for_each(|cost| needs.cost(cost));
    }
}

fn is_on<T: ?Sized>(choice: &StoreChoice<T>) -> bool {
    !matches!(choice, StoreChoice::Off)
}

fn part(name: &'static str, is_on: bool, switch: &'static str) -> PartCost {
    let cost = if is_on { PartCost::on(name) } else { PartCost::off(name) };
    cost.with_switch(switch)
}

fn names<'a>(tools: &'a [&'static str]) -> impl Iterator<Item = ToolName> + 'a {
    tools.iter().map(|&name| name.into())
}
