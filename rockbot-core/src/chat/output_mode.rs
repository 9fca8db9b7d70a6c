//! The mode of structured output: how a model is made to answer in a schema.

use serde::{Deserialize, Serialize};

/// The way to make a model give an answer that matches an [`OutputSchema`](super::OutputSchema).
///
/// Every answer is checked against the schema, whatever the mode; an answer that does not match
/// is requested again. The mode is chosen by the request, else by the model's client
/// ([`ModelInfo::output_mode`](super::ModelInfo)): from the setting
/// `LLM.{tier}.StructuredOutput`, else by its knowledge of the provider and the model, and by the
/// modes that its server has refused.
///
/// ```
/// use rockbot_core::chat::OutputMode;
///
/// assert_eq!(OutputMode::Auto.or(OutputMode::Tool), OutputMode::Tool);
/// assert_eq!(OutputMode::named("Prompt"), Some(OutputMode::Prompt));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutputMode {
    /// The mode that suits the model, as far as its client knows it; else [`OutputMode::Native`]. The
    /// default.
    #[default]
    Auto,
    /// The provider's own schema for answers. While the model has tools it is told the schema in
    /// words alone, because some servers never call a tool once a schema is set.
    Native,
    /// A tool `final_answer` whose arguments are the answer. For models that call tools reliably, on
    /// servers that know no schema for answers.
    Tool,
    /// Words alone: the schema is in the prompt, and the JSON is found in the text of the answer,
    /// also between words and code fences. For models that can do nothing else.
    Prompt,
}

impl OutputMode {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Native, Self::Tool, Self::Prompt];

    /// Returns the name in settings: `auto`, `native`, `tool` or `prompt`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Native => "native",
            Self::Tool => "tool",
            Self::Prompt => "prompt",
        }
    }

    /// Returns the mode with this name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|mode| mode.name().eq_ignore_ascii_case(name.trim()))
    }

    /// Returns this mode, or `other` if this mode is [`OutputMode::Auto`].
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match self {
            Self::Auto => other,
            mode => mode,
        }
    }

    /// Returns `true` for [`OutputMode::Auto`].
    pub fn is_auto(&self) -> bool {
        *self == Self::Auto
    }

    /// Returns `true` if a request may carry a schema for its answer.
    pub fn allows_native(self) -> bool {
        matches!(self, Self::Auto | Self::Native)
    }
}
