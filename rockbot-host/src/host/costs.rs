//! The costs of a host's parts: [`AgentHost::costs`].

use std::collections::HashMap;
use std::sync::Arc;

use rockbot_core::ToolName;
use rockbot_core::subsystem::PartCost;
use rockbot_core::tool::ToolEntry;

use super::AgentHost;
use crate::engine::tokens;

impl AgentHost {
    /// Returns the parts of this host, on or off, each with its cost in model calls and tokens:
    /// first the parts of every turn, then the parts of subsystems.
    ///
    /// Tokens are estimated from the texts that models are sent, at four bytes a token. A tool
    /// counts in the first part that names it. A subsystem that states no cost is listed with an
    /// unknown cost.
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    ///
    /// let host = AgentHost::in_memory().chat(ScriptedModel::new()).instructions("You are a clerk.").build()?;
    /// let costs: Vec<_> = host.costs().iter().map(ToString::to_string).collect();
    /// assert!(costs.contains(&"instructions: 4 tokens in each request; no model calls of its own".to_owned()));
    /// assert!(costs.contains(&"completion judge: off, see `AgentHost.MaxCompletionReprompts`".to_owned()));
    /// # Ok::<_, rockbot_host::BuildError>(())
    /// ```
    pub fn costs(&self) -> Vec<PartCost> {
        let snapshot = self.registry.snapshot();
        let engine = self.turns().engine();
        let view = engine.tools.view(None, false, &[]);
        let mut sizes: HashMap<_, _> = snapshot.entries().iter().map(|tool| size(tool, false)).collect();
        sizes.extend(view.entries().iter().map(|tool| size(tool, true)));
        let declared = self.declared_costs.iter();
        let declared: Vec<_> = declared.map(|cost| of_part(cost.clone(), &mut sizes)).collect();
        let mut costs = engine.costs();
        let others = sizes.keys().cloned().collect::<Vec<_>>();
        costs.push(match others.len() {
            0 => PartCost::off("other tools"),
            count => of_part(
                PartCost::on(format!("other tools ({count})")).with_tools(others),
                &mut sizes,
            ),
        });
        costs.extend(declared);
        costs
    }
}

/// The length of a tool's definition, and whether it stands in every request.
type Size = (usize, bool);

fn size(tool: &Arc<ToolEntry>, is_shown: bool) -> (ToolName, Size) {
    (tool.registration().name.clone(), (tool.definition().len(), is_shown))
}

/// Adds the tokens of a part's tools to its cost, and takes them from `sizes`.
fn of_part(mut cost: PartCost, sizes: &mut HashMap<ToolName, Size>) -> PartCost {
    for (len, is_shown) in cost.tools.iter().filter_map(|name| sizes.remove(name)) {
        if is_shown {
            cost.request_tokens += tokens(len)
        } else {
            cost.on_demand_tokens += tokens(len)
        }
    }
    cost
}
