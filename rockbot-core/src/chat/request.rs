//! What is asked of a model.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ChatMessage;
use crate::ToolName;
use crate::tool::ToolView;

/// How capable, and how dear, a model the work deserves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelTier {
    /// Short questions, single steps.
    Low,
    /// The ordinary case, and what no tier given means.
    #[default]
    Balanced,
    /// Deep analysis, research.
    High,
}

impl ModelTier {
    /// All tiers, from the lowest.
    pub const ALL: [Self; 3] = [Self::Low, Self::Balanced, Self::High];

    /// The tier's name in configuration and logs: `Low`, `Balanced`, `High`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "Low",
            Self::Balanced => "Balanced",
            Self::High => "High",
        }
    }
}

/// Whether the model may, must or must not call a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// As the model sees fit.
    #[default]
    Auto,
    /// No tool.
    None,
    /// Some tool.
    Required,
    /// This tool.
    Tool(ToolName),
}

/// The shape that an answer must have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputSchema {
    /// A name for the shape: 1 to 64 characters of `A-Z a-z 0-9 _ -`.
    pub name: String,
    /// Its JSON Schema.
    pub schema: Value,
}

impl OutputSchema {
    /// The shape of `T`.
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
            schema: crate::tool::schema_of::<T>(),
        }
    }
}

/// A question to a model. What is `None` is not sent: models refuse knobs that they don't know.
#[derive(Debug, Clone, Default)]
pub struct ChatRequest {
    /// The conversation so far.
    pub messages: Vec<Arc<ChatMessage>>,
    /// The tools that the model may call.
    pub tools: ToolView,
    /// Whether it may, must or must not.
    pub tool_choice: ToolChoice,
    /// How capable a model; `None` means [`ModelTier::Balanced`].
    pub tier: Option<ModelTier>,
    /// The shape of the answer, if it must have one.
    pub output: Option<OutputSchema>,
    /// The longest answer, in tokens.
    pub max_output_tokens: Option<u32>,
    /// How adventurous: 0 is the least.
    pub temperature: Option<f32>,
}

impl ChatRequest {
    /// A request with these messages and no tools.
    pub fn new(messages: impl IntoIterator<Item = ChatMessage>) -> Self {
        Self {
            messages: messages.into_iter().map(Arc::new).collect(),
            ..Self::default()
        }
    }
}
