//! The tool by which a model states the effects of its turn before it reads text of others.
//!
//! It only answers. The guard finds the plan in the calls of the turn that succeeded, so the plan
//! lives in the turn's journal, and what is read later cannot widen it.

use rockbot_core::CallContext;
use rockbot_core::tool::{Tool, ToolError, ToolErrorCode, tool};
use rockbot_core::trust::Label;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The name of the tool.
pub(super) const NAME: &str = "plan_effects";

/// Maximum number of effects of one plan.
const MAX_EFFECTS: usize = 16;

/// The effects that a turn is going to have.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct EffectPlan {
    pub(super) effects: Vec<PlannedEffect>,
}

/// One call that a turn is going to make.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct PlannedEffect {
    pub(super) tool: String,
    #[serde(default)]
    pub(super) arguments: Map<String, Value>,
}

/// Returns the tool.
pub(crate) fn plan_tool() -> Tool {
    tool(NAME, plan).pure().own_output().internal().description(
        "Call it before you read anything, with the calls that the user's message asks for and the arguments that it \
         names (recipient, amount, path). Planned calls need no approval later.",
    )
}

async fn plan(plan: EffectPlan, cx: CallContext) -> Result<String, ToolError> {
    if has_read_others(&cx.label()) {
        let message = "text of others was read already, so a plan endorses nothing: make the calls, and the user is \
                       asked where needed";
        return Err(ToolError::new(ToolErrorCode::Denied, message));
    }
    let count = plan.effects.len();
    if count == 0 || count > MAX_EFFECTS {
        let message = format!("a plan has 1 to {MAX_EFFECTS} effects, and this plan has {count}");
        return Err(ToolError::invalid_arguments(message));
    }
    let tools: Vec<_> = plan.effects.iter().map(|effect| effect.tool.as_str()).collect();
    Ok(format!("Planned: {}.", tools.join(", ")))
}

/// Returns `true` for the label of a model that has read text of others besides descriptions of
/// tools.
pub(super) fn has_read_others(label: &Label) -> bool {
    let mut sources = label.sources().iter();
    label.is_unknown() || sources.any(|source| !source.starts_with("tools:"))
}

impl PlannedEffect {
    /// Returns the arguments with a value, and each of their values, as an endorsement names them.
    pub(super) fn values(&self) -> Vec<(String, String)> {
        let mut values = Vec::new();
        for (name, value) in &self.arguments {
            collect(name, value, &mut values);
        }
        values
    }
}

fn collect(path: &str, value: &Value, values: &mut Vec<(String, String)>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => values.push((path.to_owned(), number.to_string())),
        Value::String(text) => values.push((path.to_owned(), text.clone())),
        Value::Array(items) => items.iter().for_each(|item| collect(path, item, values)),
        Value::Object(members) => {
            for (name, member) in members {
                collect(&format!("{path}.{name}"), member, values);
            }
        }
    }
}
