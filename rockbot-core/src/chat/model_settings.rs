//! Settings that a request gives to the model, such as the temperature.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ReasoningEffort, ToolChoice};

/// Settings of a model call: sampling, limits, reasoning, and members of a provider's own.
///
/// All are optional. An unset setting is not sent, because models reject parameters that they do
/// not know. A setting of the request wins over the setting of the model's behavior, which wins
/// over the setting of its tier; members of the extra body and extra headers are merged by name.
///
/// A client sends the settings that its dialect has a name for and ignores the rest. Values are
/// checked where they enter: by the configuration, when a turn is accepted, and before a request
/// is sent; see [`ModelSettings::check`].
///
/// # Examples
///
/// ```
/// use rockbot_core::chat::{ModelSettings, ReasoningEffort};
///
/// let tier = ModelSettings::new().with_temperature(0.7).with_max_output_tokens(4096);
/// let request = ModelSettings::new().with_temperature(0.0).with_reasoning_effort(ReasoningEffort::Low);
/// let both = request.over(&tier);
/// assert_eq!((both.temperature, both.max_output_tokens), (Some(0.0), Some(4096)));
/// assert_eq!(serde_json::to_string(&request)?, r#"{"temperature":0.0,"reasoningEffort":"low"}"#);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ModelSettings {
    /// Sampling temperature of at least 0; 0 is the most deterministic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Share of the probability mass that is sampled from, above 0 and at most 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f32>,
    /// Maximum length of the answer in tokens, at least 1. Reasoning is included, except with
    /// Anthropic, whose thinking budget comes on top.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Seed of the sampling, for answers that repeat where the server supports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Texts that end the answer; they are not part of it. Servers commonly take up to 4.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
    /// The depth of reasoning before the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The constraint on tool calls. Within a turn, a constraint that forces a call holds until the
    /// first call was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// `false` to get at most one tool call with each answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// `true` to let the server sample only calls that match the schemas of the tools, where the
    /// dialect knows OpenAI's strict mode. A tool whose schema has no strict form is sent without,
    /// see [`ToolEntry::strict_schema`](crate::tool::ToolEntry::strict_schema).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_tools: Option<bool>,
    /// `false` for a model that takes no images and files: it reads their descriptions. Unset, they
    /// are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// Members that are added to the body of the request. None may have the name of a member that
    /// the request has already.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_body: BTreeMap<String, Value>,
    /// Headers that are added to the request. No message, log or file has them, since they may be
    /// secret: a turn that is resumed goes on without the headers of its request, but with the
    /// headers of its tier and its client.
    #[serde(skip_serializing)]
    pub extra_headers: BTreeMap<String, String>,
}

impl ModelSettings {
    /// Creates settings that are all unset.
    pub const fn new() -> Self {
        Self {
            temperature: None,
            top_p: None,
            max_output_tokens: None,
            seed: None,
            stop_sequences: Vec::new(),
            reasoning_effort: None,
            tool_choice: None,
            parallel_tool_calls: None,
            strict_tools: None,
            images: None,
            extra_body: BTreeMap::new(),
            extra_headers: BTreeMap::new(),
        }
    }

    /// Sets the sampling temperature: 0 for the most deterministic answers.
    #[must_use]
    pub fn with_temperature(mut self, temperature: f32) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the share of the probability mass that is sampled from, above 0 and at most 1.
    #[must_use]
    pub fn with_top_p(mut self, top_p: f32) -> Self {
        self.top_p = Some(top_p);
        self
    }

    /// Sets the maximum length of the answer in tokens.
    #[must_use]
    pub fn with_max_output_tokens(mut self, tokens: u32) -> Self {
        self.max_output_tokens = Some(tokens);
        self
    }

    /// Sets the seed of the sampling.
    #[must_use]
    pub fn with_seed(mut self, seed: i64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the texts that end the answer.
    #[must_use]
    pub fn with_stop_sequences<T: Into<String>>(mut self, texts: impl IntoIterator<Item = T>) -> Self {
        self.stop_sequences = texts.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the depth of reasoning before the answer.
    #[must_use]
    pub fn with_reasoning_effort(mut self, effort: ReasoningEffort) -> Self {
        self.reasoning_effort = Some(effort);
        self
    }

    /// Sets the constraint on tool calls.
    #[must_use]
    pub fn with_tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = Some(choice);
        self
    }

    /// Sets whether an answer may have several tool calls.
    #[must_use]
    pub fn with_parallel_tool_calls(mut self, is_allowed: bool) -> Self {
        self.parallel_tool_calls = Some(is_allowed);
        self
    }

    /// Sets whether the server samples only calls that match the schemas of the tools.
    #[must_use]
    pub fn with_strict_tools(mut self, is_strict: bool) -> Self {
        self.strict_tools = Some(is_strict);
        self
    }

    /// Sets whether the model takes images and files.
    #[must_use]
    pub fn with_images(mut self, takes_images: bool) -> Self {
        self.images = Some(takes_images);
        self
    }

    /// Adds a member to the body of the request, such as `verbosity` or a server's
    /// `chat_template_kwargs`.
    #[must_use]
    pub fn with_extra_body(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra_body.insert(name.into(), value.into());
        self
    }

    /// Adds a header to the request. Its name is kept in lower case.
    #[must_use]
    pub fn with_extra_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.extra_headers
            .insert(name.into().to_ascii_lowercase(), value.into());
        self
    }

    /// Returns these settings; where one is unset, the setting of `base` takes its place.
    #[must_use]
    pub fn over(&self, base: &Self) -> Self {
        let stop_sequences = if self.stop_sequences.is_empty() {
            &base.stop_sequences
        } else {
            &self.stop_sequences
        };
        Self {
            temperature: self.temperature.or(base.temperature),
            top_p: self.top_p.or(base.top_p),
            max_output_tokens: self.max_output_tokens.or(base.max_output_tokens),
            seed: self.seed.or(base.seed),
            stop_sequences: stop_sequences.clone(),
            reasoning_effort: self
                .reasoning_effort
                .as_ref()
                .or(base.reasoning_effort.as_ref())
                .cloned(),
            tool_choice: self.tool_choice.as_ref().or(base.tool_choice.as_ref()).cloned(),
            parallel_tool_calls: self.parallel_tool_calls.or(base.parallel_tool_calls),
            strict_tools: self.strict_tools.or(base.strict_tools),
            images: self.images.or(base.images),
            extra_body: merged(&self.extra_body, &base.extra_body),
            extra_headers: merged(&self.extra_headers, &base.extra_headers),
        }
    }

    /// Returns `upper` over `base`, without a copy when only one is set.
    pub fn layered<'a>(upper: Option<&'a Self>, base: Option<&'a Self>) -> Cow<'a, Self> {
        static UNSET: ModelSettings = ModelSettings::new();
        match (upper, base) {
            (Some(upper), Some(base)) => Cow::Owned(upper.over(base)),
            (settings, None) | (None, settings) => Cow::Borrowed(settings.unwrap_or(&UNSET)),
        }
    }

    /// Returns the settings for a request, which shares them; `None` if none is set.
    pub fn shared(self) -> Option<Arc<Self>> {
        (self != Self::new()).then(|| Arc::new(self))
    }

    /// Returns `true` if the tool choice forces a call.
    pub fn forces_tool_call(&self) -> bool {
        matches!(self.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)))
    }

    /// Checks all values.
    ///
    /// # Errors
    ///
    /// Returns an error that names the first setting with a value that no model takes.
    pub fn check(&self) -> Result<(), ModelSettingsError> {
        let is_valid =
            |value: Option<f32>, is: fn(f32) -> bool| value.is_none_or(|value| value.is_finite() && is(value));
        let checks = [
            (
                "temperature",
                "a number of at least 0",
                is_valid(self.temperature, |value| value >= 0.0),
            ),
            (
                "topP",
                "a number above 0 and at most 1",
                is_valid(self.top_p, |value| value > 0.0 && value <= 1.0),
            ),
            ("maxOutputTokens", "at least 1", self.max_output_tokens != Some(0)),
            (
                "stopSequences",
                "texts that are not empty",
                !self.stop_sequences.iter().any(String::is_empty),
            ),
            (
                "reasoningEffort",
                "a word such as `low`",
                self.reasoning_effort
                    .as_ref()
                    .is_none_or(|effort| !effort.as_str().is_empty()),
            ),
            (
                "extraHeaders",
                "headers that can be sent and that do not frame the body",
                self.extra_headers.iter().all(is_header),
            ),
        ];
        match checks.into_iter().find(|(_, _, is_valid)| !is_valid) {
            Some((setting, expected, _)) => Err(ModelSettingsError { setting, expected }),
            None => Ok(()),
        }
    }
}

/// Hides the values of headers, which may be keys.
impl fmt::Debug for ModelSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelSettings")
            .field("temperature", &self.temperature)
            .field("top_p", &self.top_p)
            .field("max_output_tokens", &self.max_output_tokens)
            .field("seed", &self.seed)
            .field("stop_sequences", &self.stop_sequences)
            .field("reasoning_effort", &self.reasoning_effort)
            .field("tool_choice", &self.tool_choice)
            .field("parallel_tool_calls", &self.parallel_tool_calls)
            .field("strict_tools", &self.strict_tools)
            .field("images", &self.images)
            .field("extra_body", &self.extra_body)
            .field("extra_headers", &self.extra_headers.keys())
            .finish()
    }
}

fn merged<T: Clone>(upper: &BTreeMap<String, T>, base: &BTreeMap<String, T>) -> BTreeMap<String, T> {
    let mut all = base.clone();
    all.extend(upper.iter().map(|(name, value)| (name.clone(), value.clone())));
    all
}

/// Returns `true` if the header can be sent beside the headers that belong to the transport.
fn is_header((name, value): (&String, &String)) -> bool {
    const OF_TRANSPORT: [&str; 5] = [
        "connection",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
    ];
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_text = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    let is_name = !name.is_empty() && name.bytes().all(is_token);
    is_name && value.bytes().all(is_text) && !OF_TRANSPORT.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// A model setting with a value that no model takes.
///
/// The message names the setting and the values that it allows; it never repeats the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the model setting `{setting}` must be {expected}: correct it, or leave it unset for the model's default")]
pub struct ModelSettingsError {
    setting: &'static str,
    expected: &'static str,
}

impl ModelSettingsError {
    /// Returns the name of the setting, as it is serialized: `temperature`, `topP` …
    pub fn setting(&self) -> &'static str {
        self.setting
    }

    /// Returns the values that the setting allows.
    pub fn expected(&self) -> &'static str {
        self.expected
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn upper_settings_win_and_maps_are_merged() {
        let base = ModelSettings::new()
            .with_temperature(1.0)
            .with_seed(3)
            .with_stop_sequences(["a", "b"])
            .with_extra_body("x", 1)
            .with_extra_body("y", 1)
            .with_extra_header("X-One", "1");
        let upper = ModelSettings::new()
            .with_temperature(0.0)
            .with_stop_sequences(["c"])
            .with_tool_choice(ToolChoice::Required)
            .with_extra_body("y", json!({"z": 2}))
            .with_extra_header("x-one", "2");
        let expected = json!({
            "temperature": 0.0, "seed": 3, "stopSequences": ["c"], "toolChoice": "required",
            "extraBody": {"x": 1, "y": {"z": 2}}, "extraHeaders": {"x-one": "2"},
        });
        let mut written = serde_json::to_value(upper.over(&base)).unwrap();
        // Values of headers are read from other programs, and never written.
        assert_eq!(written.get("extraHeaders"), None);
        written["extraHeaders"] = json!(upper.over(&base).extra_headers);
        assert_eq!(written, expected);
        assert_eq!(
            serde_json::from_value::<ModelSettings>(expected).unwrap(),
            upper.over(&base)
        );
    }

    #[test]
    fn one_layer_is_not_copied() {
        let settings = ModelSettings::new().with_seed(1);
        for layers in [(Some(&settings), None), (None, Some(&settings))] {
            assert!(matches!(ModelSettings::layered(layers.0, layers.1), Cow::Borrowed(one) if one == &settings));
        }
        assert_eq!(*ModelSettings::layered(None, None), ModelSettings::new());
    }

    #[test]
    fn values_that_no_model_takes_are_named() {
        let check = |settings: ModelSettings, expected: &str| {
            let error = settings.check().unwrap_err();
            assert_eq!(error.setting(), expected);
            let start = format!("the model setting `{expected}` must be ");
            assert!(error.to_string().starts_with(&start), "{error}");
        };
        let new = ModelSettings::new;
        new()
            .with_temperature(2.0)
            .with_top_p(1.0)
            .with_extra_header("X-Title", "é")
            .check()
            .unwrap();
        for temperature in [-0.1, f32::NAN, f32::INFINITY] {
            check(new().with_temperature(temperature), "temperature");
        }
        check(new().with_top_p(0.0), "topP");
        check(new().with_top_p(1.1), "topP");
        check(new().with_max_output_tokens(0), "maxOutputTokens");
        check(new().with_stop_sequences(["a", ""]), "stopSequences");
        check(new().with_reasoning_effort("".into()), "reasoningEffort");
        for (name, value) in [("", "x"), ("a b", "x"), ("x", "a\r\nb"), ("Content-Length", "1")] {
            check(new().with_extra_header(name, value), "extraHeaders");
        }
    }

    #[test]
    fn debug_hides_the_values_of_headers() {
        let settings = ModelSettings::new().with_extra_header("api-key", "secret");
        let shown = format!("{settings:?}");
        assert!(shown.contains("api-key") && !shown.contains("secret"), "{shown}");
    }
}
