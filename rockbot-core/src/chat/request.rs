//! Requests to a model.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ChatMessage, ModelSettings};
use crate::tool::ToolView;

/// A class of models by capability and price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelTier {
    /// For short questions and single steps.
    Low,
    /// The ordinary case, and the default.
    #[default]
    Balanced,
    /// For deep analysis and research.
    High,
}

impl ModelTier {
    /// All tiers, from the lowest.
    pub const ALL: [Self; 3] = [Self::Low, Self::Balanced, Self::High];

    /// Returns the name in configuration and logs: `Low`, `Balanced` or `High`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "Low",
            Self::Balanced => "Balanced",
            Self::High => "High",
        }
    }
}

/// A JSON Schema that an answer must match.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutputSchema {
    /// The name of the schema: 1 to 64 characters of `A-Z a-z 0-9 _ -`.
    pub name: String,
    /// The JSON Schema.
    pub schema: Value,
}

impl OutputSchema {
    /// Creates the schema of `T`, named after the type.
    ///
    /// ```
    /// # use rockbot_core::chat::OutputSchema;
    /// #[derive(schemars::JsonSchema)]
    /// struct Weather { celsius: f32 }
    /// assert_eq!(OutputSchema::of::<Weather>().name, "Weather");
    /// ```
    pub fn of<T: schemars::JsonSchema>() -> Self {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let name: String = T::schema_name()
            .chars()
            .map(|c| if allowed(c) { c } else { '_' })
            .take(64)
            .collect();
        Self {
            name,
            schema: rockbot_schema::unordered_schema_of::<T>(),
        }
    }

    /// Returns `true` if the schema describes a single object, so that it can be the schema of a
    /// tool's arguments. Providers refuse alternatives at the top, such as the variants of an enum.
    pub fn is_object(&self) -> bool {
        let has = |member: &&str| self.schema.get(member).is_some();
        self.schema["type"] == "object" && !["anyOf", "oneOf", "allOf"].iter().any(has)
    }

    /// Returns the schema as models read it in words: without the keywords that only validate, and
    /// the properties in the order of `required`.
    pub fn text_for_models(&self) -> String {
        rockbot_schema::schema_text(&self.schema)
    }

    /// Creates a schema. The name has 1 to 64 characters of `A-Z a-z 0-9 _ -`.
    pub fn new(name: impl Into<String>, schema: Value) -> Self {
        Self {
            name: name.into(),
            schema,
        }
    }
}

/// A request to a model. Options that are `None` are not sent, because models reject parameters
/// that they do not know.
///
/// ```
/// use rockbot_core::chat::{ChatMessage, ChatRequest, ModelSettings};
///
/// let settings = ModelSettings::new().with_temperature(0.0).with_max_output_tokens(200);
/// let request = ChatRequest::new([ChatMessage::user("Sum it up.")]).with_settings(settings);
/// assert_eq!(request.messages.len(), 1);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The conversation so far.
    pub messages: Vec<Arc<ChatMessage>>,
    /// The tools that the model may call.
    pub tools: ToolView,
    /// The tier of the model; `None` means [`ModelTier::Balanced`].
    pub tier: Option<ModelTier>,
    /// The schema that the answer must match, if any.
    pub output: Option<OutputSchema>,
    /// The settings of the model for this request; they win over the settings of its client.
    pub settings: Option<Arc<ModelSettings>>,
}

impl ChatRequest {
    /// Creates a request with these messages and without tools.
    pub fn new<M: Into<Arc<ChatMessage>>>(messages: impl IntoIterator<Item = M>) -> Self {
        Self {
            messages: messages.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Sets the tools that the model may call. Default none.
    #[must_use]
    pub fn with_tools(mut self, tools: ToolView) -> Self {
        self.tools = tools;
        self
    }

    /// Sets the tier of the model. Default `None`: [`ModelTier::Balanced`].
    #[must_use]
    pub fn with_tier(mut self, tier: impl Into<Option<ModelTier>>) -> Self {
        self.tier = tier.into();
        self
    }

    /// Sets the schema that the answer must match. Default none.
    #[must_use]
    pub fn with_output(mut self, output: impl Into<Option<OutputSchema>>) -> Self {
        self.output = output.into();
        self
    }

    /// Sets the settings of the model for this request.
    ///
    /// ```
    /// # use rockbot_core::chat::{ChatMessage, ChatRequest, ModelSettings};
    /// let request = ChatRequest::new([ChatMessage::user("Is it spam?")])
    ///     .with_settings(ModelSettings::new().with_temperature(0.0));
    /// assert_eq!(request.settings_over(None).temperature, Some(0.0));
    /// ```
    #[must_use]
    pub fn with_settings(mut self, settings: ModelSettings) -> Self {
        self.settings = settings.shared();
        self
    }

    /// Returns the settings of this request; where one is unset, the setting of `base` takes its
    /// place. Clients pass their own settings as `base`. Nothing is copied unless both are set.
    pub fn settings_over<'a>(&'a self, base: Option<&'a ModelSettings>) -> Cow<'a, ModelSettings> {
        ModelSettings::layered(self.settings.as_deref(), base)
    }
}

#[cfg(test)]
mod tests {
    use super::OutputSchema;

    #[test]
    fn an_output_schema_has_standard_keywords_only() {
        #[allow(dead_code, reason = "only its schema is used")]
        #[derive(schemars::JsonSchema)]
        struct Trip {
            to: Option<String>,
            by: String,
        }
        let schema = OutputSchema::of::<Trip>().schema;
        let keywords: Vec<_> = schema.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keywords, ["properties", "required", "type"]);
    }
}
