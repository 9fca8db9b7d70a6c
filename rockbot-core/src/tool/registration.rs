//! The description of a tool: for the model, and for the host.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::endorsement::Orders;
use super::{ArgumentRole, Effect, ToolExposure, ToolInvokeRequest, schema_of};
use crate::support::{indented, one_line};
use crate::{CallContext, ToolName};
use rockbot_schema::model_schema;

/// Facts about a tool, besides its effect, that guide the host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ToolHints {
    /// `true` if each call must be approved before it runs. Default `false`.
    pub needs_approval: bool,
    /// Maximum duration of a call. Default `None`: the host's own limit.
    pub time_limit: Option<Duration>,
    /// Maximum number of calls that run concurrently in one host. Default `None`: no limit of its
    /// own. Zero is an error of the registration.
    pub max_concurrency: Option<u32>,
    /// `true` if results stay in the conversation as they are, however long. Default `false`: the
    /// host offloads long results. Set it for tools that read offloaded results, or that return long
    /// texts in parts themselves.
    pub keeps_results_whole: bool,
    /// `true` if a call hands its work to another agent that reports the result later. The host then
    /// does not judge the turn by its own calls alone. Default `false`.
    #[serde(skip_serializing_if = "is_false")]
    pub delegates: bool,
    /// `true` if a call runs a turn of another agent and waits for it. The host then gives it a
    /// slice of the calling turn's budget, and counts the costs of the turn. Default `false`.
    #[serde(skip_serializing_if = "is_false")]
    pub runs_turn: bool,
    /// `true` if the tool reads the host's [`ToolGuides`](super::ToolGuides) to the model: the host
    /// then adds no tool of its own for that. Default `false`.
    #[serde(skip_serializing_if = "is_false")]
    pub reads_guides: bool,
    /// `true` if the output is the tool's own: it holds nothing but the program's own knowledge,
    /// such as the time or a sum, and states the [provenance](crate::content::Provenance) of each
    /// part that it shows of others. Default `false`: the output is outside text, and a turn that
    /// has read it is untrusted. It never crosses a bus: the words of another program about its own
    /// output are no evidence.
    #[serde(skip)]
    pub own_output: bool,
    /// `true` if calls change nothing outside of the agent: its memory, its folder of files, its
    /// sandbox, work whose own calls are checked. Such calls run although the message of their turn
    /// [only informs](crate::turn::TurnRequest::with_informing). Default `false`. It never crosses a
    /// bus.
    #[serde(skip)]
    pub internal: bool,
    /// `true` if name, description and schema are text of another program: they are defused before a
    /// model reads them, and a turn whose model can see the tool is untrusted. Default `false`;
    /// always `true` for a registration that came over a bus, unless the operator vouches for the
    /// program by [`with_outside_text`](Self::with_outside_text).
    #[serde(skip, default = "crossed_a_bus")]
    pub outside_text: bool,
    /// `true` if a call of a model that has read untrusted text needs an endorsement: a person
    /// approves it first, as with [`needs_approval`](Self::needs_approval). Set it for tools that
    /// write data that is trusted later. Default `false`.
    #[serde(skip_serializing_if = "is_false")]
    pub needs_endorsement: bool,
    /// Roles of arguments, by the name of the argument, that the program declares. Default empty:
    /// schema and names tell. They never cross a bus.
    #[serde(skip)]
    pub argument_roles: Vec<(String, ArgumentRole)>,
    /// The reason why calls with an effect need no endorsement although their model has read
    /// untrusted text. Default `None`. It never crosses a bus.
    #[serde(skip)]
    pub trusted_effect: Option<Arc<str>>,
    /// The orders of a user that endorse a call in words. They never cross a bus.
    #[serde(skip)]
    pub(crate) orders: Option<Orders>,
    /// Condition for showing the tool to the model. Default [`ToolExposure::Always`].
    #[serde(skip_serializing_if = "ToolExposure::is_always")]
    pub exposure: ToolExposure,
    /// Groups of tools that a successful call activates. Empty by default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub activates: Vec<ToolName>,
}

impl ToolHints {
    /// Sets whether each call must be approved before it runs. Default `false`.
    #[must_use]
    pub fn with_needs_approval(mut self, needs_approval: bool) -> Self {
        self.needs_approval = needs_approval;
        self
    }

    /// Sets the maximum duration of a call. Default `None`: the host's own limit.
    #[must_use]
    pub fn with_time_limit(mut self, time_limit: impl Into<Option<Duration>>) -> Self {
        self.time_limit = time_limit.into();
        self
    }

    /// Sets the maximum number of calls that run concurrently in one host. Default `None`: no limit
    /// of its own.
    #[must_use]
    pub fn with_max_concurrency(mut self, max_concurrency: impl Into<Option<u32>>) -> Self {
        self.max_concurrency = max_concurrency.into();
        self
    }

    /// Sets whether results stay in the conversation as they are, however long. Default `false`: the
    /// host offloads long results.
    #[must_use]
    pub fn with_keeps_results_whole(mut self, keeps_results_whole: bool) -> Self {
        self.keeps_results_whole = keeps_results_whole;
        self
    }

    /// Sets whether a call hands its work to another agent that reports the result later. Default
    /// `false`.
    #[must_use]
    pub fn with_delegates(mut self, delegates: bool) -> Self {
        self.delegates = delegates;
        self
    }

    /// Sets whether the tool reads the host's guides to the model. Default `false`.
    #[must_use]
    pub fn with_reads_guides(mut self, reads_guides: bool) -> Self {
        self.reads_guides = reads_guides;
        self
    }

    /// Sets whether the output is the tool's own. Default `false`: outside text.
    #[must_use]
    pub fn with_own_output(mut self, own_output: bool) -> Self {
        self.own_output = own_output;
        self
    }

    /// Sets whether calls change nothing outside of the agent. Default `false`.
    #[must_use]
    pub fn with_internal(mut self, internal: bool) -> Self {
        self.internal = internal;
        self
    }

    /// Sets whether the tool describes itself in text of another program. Default `false`.
    #[must_use]
    pub fn with_outside_text(mut self, outside_text: bool) -> Self {
        self.outside_text = outside_text;
        self
    }

    /// Sets whether a call of a model that has read untrusted text needs an endorsement. Default
    /// `false`.
    #[must_use]
    pub fn with_needs_endorsement(mut self, needs_endorsement: bool) -> Self {
        self.needs_endorsement = needs_endorsement;
        self
    }

    /// Sets the roles of arguments, by the name of the argument. Empty by default: schema and names
    /// tell.
    #[must_use]
    pub fn with_argument_roles(mut self, roles: Vec<(String, ArgumentRole)>) -> Self {
        self.argument_roles = roles;
        self
    }

    /// Sets the reason why calls with an effect need no endorsement although their model has read
    /// untrusted text. Default `None`.
    #[must_use]
    pub fn with_trusted_effect(mut self, reason: impl Into<Option<Arc<str>>>) -> Self {
        self.trusted_effect = reason.into();
        self
    }

    /// Sets the condition for showing the tool to the model. Default [`ToolExposure::Always`].
    #[must_use]
    pub fn with_exposure(mut self, exposure: ToolExposure) -> Self {
        self.exposure = exposure;
        self
    }

    /// Sets the groups of tools that a successful call activates. Empty by default.
    #[must_use]
    pub fn with_activates(mut self, groups: Vec<ToolName>) -> Self {
        self.activates = groups;
        self
    }
}

/// Defuses the descriptions in a schema. Values that serde_json parsed are not nested deeper than
/// 128 levels.
fn defuse_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if matches!(name.as_str(), "description" | "title") => {
                        *text = one_line(text).into_owned();
                    }
                    member => defuse_descriptions(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(defuse_descriptions),
        _ => {}
    }
}

/// Returns the mark of a description that was read from JSON: another program wrote it.
fn crossed_a_bus() -> bool {
    true
}

/// Returns the hints of a registration that came over a bus without any.
fn of_another_program() -> ToolHints {
    ToolHints::default().with_outside_text(true)
}

/// Leaves the member out of the JSON of other tools, so that it stays as older versions write it.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The description of a tool: name, description and schema for the model, the rest for the host.
///
/// It crosses a bus as JSON with camelCase members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolRegistration {
    /// The name, unique in the registry: 1 to 64 characters of `A-Z a-z 0-9 _ -`.
    pub name: ToolName,
    /// The purpose of the tool, in words for the model. It stands in every request, so keep it short.
    pub description: String,
    /// The JSON Schema of the arguments, which must describe an object.
    pub parameters_schema: Value,
    /// The origin of the tool, such as `local`, `brave` or `mcp:weather-server`.
    pub source: String,
    /// The effect of a call. Default [`Effect::Mutating`].
    #[serde(default)]
    pub effect: Effect,
    /// Further facts for the host.
    #[serde(default = "of_another_program")]
    pub hints: ToolHints,
}

impl ToolRegistration {
    /// Creates the registration of a mutating tool from `local`, without hints.
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

    /// Creates the registration of a mutating tool from `local` whose arguments are an `A`, without
    /// hints. The doc comment on `A` becomes the description.
    ///
    /// [`tool`](super::tool) does this for a closure; call it for a tool that runs elsewhere, such as a
    /// [`remote_tool`](super::remote_tool).
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
        // The description is a member of the registration. It is removed from the schema because it
        // would cost tokens in every request a second time.
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        let description = description.as_ref().and_then(Value::as_str).unwrap_or_default();
        Self::new(name, description, schema)
    }

    /// Sets the origin of the tool, such as `local`, `brave` or `mcp:weather-server`.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<String>) -> Self {
        self.source = source.into();
        self
    }

    /// Sets the effect of a call. Default [`Effect::Mutating`].
    #[must_use]
    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Sets the further facts for the host.
    #[must_use]
    pub fn with_hints(mut self, hints: ToolHints) -> Self {
        self.hints = hints;
        self
    }

    /// Returns the definition of the tool for OpenAI-compatible models:
    /// `{"type":"function","function":{…}}`.
    ///
    /// Its `parameters` are the schema in the form that servers accept and models read best. It is
    /// an object with `properties`. Optional arguments have their plain type instead of a union
    /// with `null`. References are inlined unless they are recursive or too many. Properties are in
    /// the order of the struct's fields (or of `propertyOrdering`, else of `required`). `$schema`,
    /// `title`, number formats and empty defaults are left out. Calls are still validated against
    /// [`parameters_schema`](Self::parameters_schema).
    ///
    /// ```
    /// # use rockbot_core::tool::ToolRegistration;
    /// let tool = ToolRegistration::new("now", "Tells the time.", serde_json::json!({"type": "object"}));
    /// assert_eq!(
    ///     tool.to_llm_tool_definition(),
    ///     r#"{"type":"function","function":{"name":"now","description":"Tells the time.","parameters":{"type":"object","properties":{}}}}"#,
    /// );
    /// ```
    pub fn to_llm_tool_definition(&self) -> String {
        self.definition(&model_schema(&self.parameters_schema))
    }

    /// Defuses the text of another program: the description on one line, the descriptions of the
    /// arguments, and the words about its group.
    pub(super) fn defuse(&mut self) {
        self.description = one_line(&self.description).into_owned();
        defuse_descriptions(&mut self.parameters_schema);
        if let ToolExposure::OnDemand(group) = &mut self.hints.exposure {
            group.summary = one_line(&group.summary).into_owned().into();
            group.guide = indented(&group.guide).into();
        }
    }

    /// Returns the definition with the JSON text `parameters`, which stands in front of two closing
    /// braces.
    pub(super) fn definition(&self, parameters: &str) -> String {
        let name = Value::from(self.name.as_str());
        let description = Value::from(self.description.as_str());
        format!(
            r#"{{"type":"function","function":{{"name":{name},"description":{description},"parameters":{parameters}}}}}"#
        )
    }

    /// Returns `true` if the user's own message of the turn is nothing but the order to make this
    /// call, in the words that the tool's owner declared: that is an endorsement of it.
    pub fn is_ordered(&self, request: &ToolInvokeRequest, cx: &CallContext) -> bool {
        let (Some(orders), Some(message)) = (self.hints.orders, cx.user_message()) else {
            return false;
        };
        orders.are_given(message, &request.arguments)
    }
}
