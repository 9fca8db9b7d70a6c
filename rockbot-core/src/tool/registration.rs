//! What a tool says about itself.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Effect, schema_of};
use crate::ToolName;

/// What the host should know about a tool besides its effect.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolHints {
    /// Whether each call must be approved first.
    pub needs_approval: bool,
    /// How long a call may take; `None` means the host's limit.
    pub time_limit: Option<Duration>,
    /// How many calls may run at once in this host; `None` means no limit of its own.
    pub max_concurrency: Option<u32>,
    /// Whether its results stay in the conversation as they are, however long: for tools that read what was taken out
    /// of it, or that return long texts in parts themselves.
    pub keeps_results_whole: bool,
    /// Whether a call hands its work to another agent that reports the result later. The host then does not judge the
    /// turn by its own calls alone. Default `false`.
    #[serde(skip_serializing_if = "is_false")]
    pub delegates: bool,
}

/// Leaves the member out of the JSON of a tool that does not delegate, so that it stays as older versions write it.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_false(value: &bool) -> bool {
    !value
}

/// What is known of a tool: the part that the model reads and the part that guides the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRegistration {
    /// The name, unique in the registry.
    pub name: ToolName,
    /// What it does, in words for the model.
    pub description: String,
    /// The JSON Schema of its arguments: an object.
    pub parameters_schema: Value,
    /// Where it comes from, such as `local`, `brave` or `mcp:weather-server`.
    pub source: String,
    /// What a call changes.
    #[serde(default)]
    pub effect: Effect,
    /// What else the host should know.
    #[serde(default)]
    pub hints: ToolHints,
}

impl ToolRegistration {
    /// A mutating tool from `local` without hints.
    pub fn new(name: impl Into<ToolName>, description: impl Into<String>, parameters_schema: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters_schema,
            source: "local".into(),
            effect: Effect::default(),
            hints: ToolHints::default(),
        }
    }

    /// A mutating tool from `local` whose arguments are an `A`, without hints. The doc comment on `A` describes it.
    ///
    /// [`tool`](super::tool) makes it of the closure that runs the calls; this is for those whose calls run elsewhere.
    ///
    /// ```
    /// # use rockbot_core::tool::ToolRegistration;
    /// /// Tells the weather.
    /// #[derive(schemars::JsonSchema)]
    /// struct Forecast { city: String }
    ///
    /// let forecast = ToolRegistration::of::<Forecast>("forecast");
    /// assert_eq!(forecast.description, "Tells the weather.");
    /// assert_eq!(forecast.parameters_schema["required"][0], "city");
    /// ```
    pub fn of<A: JsonSchema>(name: impl Into<ToolName>) -> Self {
        let mut schema = schema_of::<A>();
        // The description stands beside the schema; said twice it would cost twice, in every request.
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        let description = description.as_ref().and_then(Value::as_str).unwrap_or_default();
        Self::new(name, description, schema)
    }

    /// The tool as OpenAI-compatible models want it: `{"type":"function","function":{…}}`.
    ///
    /// ```
    /// # use rockbot_core::tool::ToolRegistration;
    /// let tool = ToolRegistration::new("now", "Tells the time.", serde_json::json!({"type": "object"}));
    /// assert_eq!(
    ///     tool.to_llm_tool_definition(),
    ///     r#"{"type":"function","function":{"name":"now","description":"Tells the time.","parameters":{"type":"object"}}}"#,
    /// );
    /// ```
    pub fn to_llm_tool_definition(&self) -> String {
        let name = Value::from(self.name.as_str());
        let description = Value::from(self.description.as_str());
        let parameters = &self.parameters_schema;
        format!(
            r#"{{"type":"function","function":{{"name":{name},"description":{description},"parameters":{parameters}}}}}"#
        )
    }
}
