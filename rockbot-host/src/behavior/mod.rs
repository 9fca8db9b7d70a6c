//! Exceptions for particular models: additional prompts, nudges, limits, and model settings.
//!
//! A behavior belongs to a prefix of model ids: in the configuration under
//! `ModelBehaviors.Models`, and as prompts in the folders `model-behaviors/{prefix}/` of the data
//! folder. The longest matching prefix counts, without regard to case, of the whole id first and
//! then of the id without its vendor segments: `deepseek` matches `openrouter/deepseek-v3`, too.
//! Prompts in a folder replace the prompts of the configuration, and are reloaded within 30
//! seconds after a change.

mod client;
mod folder;
mod setters;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rockbot_core::chat::ModelSettings;
use rockbot_core::config::{Config, ConfigError, FromSetting, Section, Value};
use rockbot_core::turn::{Budget, ResultMode};

use crate::turn::PolicySnapshot;
pub(crate) use client::ModelBehaviorClient;
use folder::BehaviorFolder;

/// The exceptions for a model. A field that is `None` leaves the setting of the host.
///
/// ```
/// use rockbot_host::behavior::ModelBehavior;
///
/// let small = ModelBehavior::new().with_text_based_tool_calling(true).with_max_tool_iterations(8);
/// assert_eq!(small.max_tool_iterations, Some(8));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ModelBehavior {
    /// `AdditionalSystemPrompt`: a further system message after the instructions.
    pub additional_system_prompt: Option<Arc<str>>,
    /// `PreToolLoopPrompt`: the text at the end of each request whose model may call tools.
    pub pre_tool_loop_prompt: Option<Arc<str>>,
    /// `UseTextBasedToolCalling`: whether the model calls tools in plain text, because it has no
    /// native calls or is bad at them. Small models that were measured solve more tasks so
    /// (`benches/README.md`), and do better without nudges. Default `false`.
    pub text_based_tool_calling: bool,
    /// `NudgeOnHallucinatedToolCalls`:
    /// [`Nudges::on_hallucinated_calls`](crate::turn::Nudges::on_hallucinated_calls).
    pub nudge_on_hallucinated_tool_calls: Option<bool>,
    /// `NudgeOnLeakedToolSyntax`: [`Nudges::on_leaked_syntax`](crate::turn::Nudges::on_leaked_syntax).
    pub nudge_on_leaked_tool_syntax: Option<bool>,
    /// `NudgeOnUnexpectedCjkOutput`:
    /// [`Nudges::on_unexpected_cjk`](crate::turn::Nudges::on_unexpected_cjk).
    pub nudge_on_unexpected_cjk_output: Option<bool>,
    /// `NudgeOnToolFailureGiveup`:
    /// [`Nudges::on_tool_failure_giveup`](crate::turn::Nudges::on_tool_failure_giveup).
    pub nudge_on_tool_failure_giveup: Option<bool>,
    /// `MaxToolIterationsOverride`: [`Budget::max_model_calls`].
    pub max_tool_iterations: Option<u32>,
    /// `ToolResultChunkingThreshold`: maximum length in characters of a tool result that stays in the
    /// conversation.
    pub tool_result_chunking_threshold: Option<usize>,
    /// `MaxCompletionRepromptsOverride`:
    /// [`Evaluation::max_completion_reprompts`](crate::turn::Evaluation::max_completion_reprompts).
    pub max_completion_reprompts: Option<u32>,
    /// `MaxFollowUpPassesOverride`:
    /// [`Evaluation::max_follow_up_passes`](crate::turn::Evaluation::max_follow_up_passes).
    pub max_follow_up_passes: Option<u32>,
    /// `ScheduledTaskResultMode`: the form of tool results in the answers of scheduled turns.
    /// Default [`ResultMode::Summarize`].
    pub scheduled_task_result_mode: ResultMode,
    /// `Temperature`, `MaxOutputTokens` …: settings of all requests to the model, including the
    /// requests of background work. They win over the settings of its tier, and the settings of a
    /// request win over them. A [`tool_choice`](ModelSettings::tool_choice) holds for every request
    /// here.
    pub model_settings: Option<Arc<ModelSettings>>,
}

impl ModelBehavior {
    fn read(section: &Section<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            additional_system_prompt: text(section, "AdditionalSystemPrompt")?,
            pre_tool_loop_prompt: text(section, "PreToolLoopPrompt")?,
            text_based_tool_calling: section.get_or("UseTextBasedToolCalling", false)?,
            nudge_on_hallucinated_tool_calls: section.get("NudgeOnHallucinatedToolCalls")?,
            nudge_on_leaked_tool_syntax: section.get("NudgeOnLeakedToolSyntax")?,
            nudge_on_unexpected_cjk_output: section.get("NudgeOnUnexpectedCjkOutput")?,
            nudge_on_tool_failure_giveup: section.get("NudgeOnToolFailureGiveup")?,
            max_tool_iterations: section
                .get::<Positive>("MaxToolIterationsOverride")?
                .map(|count| count.0),
            tool_result_chunking_threshold: section
                .get::<Positive>("ToolResultChunkingThreshold")?
                .map(|chars| chars.0 as usize),
            max_completion_reprompts: section.get("MaxCompletionRepromptsOverride")?,
            max_follow_up_passes: section.get("MaxFollowUpPassesOverride")?,
            scheduled_task_result_mode: section.get("ScheduledTaskResultMode")?.unwrap_or_default(),
            model_settings: section.model_settings()?.shared(),
        })
    }

    /// Returns the settings of a turn with this model; `budget` is the budget of its request, which
    /// takes precedence.
    pub(crate) fn policy(&self, host: PolicySnapshot, budget: Option<Budget>) -> PolicySnapshot {
        let mut policy = host;
        if let Some(calls) = self.max_tool_iterations {
            policy.budget.max_model_calls = calls;
        }
        policy.budget = budget.unwrap_or(policy.budget);
        policy.result_threshold = self.tool_result_chunking_threshold.or(policy.result_threshold);
        let nudges = &mut policy.nudges;
        let evaluation = &mut policy.evaluation;
        let settings = [
            (self.nudge_on_hallucinated_tool_calls, &mut nudges.on_hallucinated_calls),
            (self.nudge_on_leaked_tool_syntax, &mut nudges.on_leaked_syntax),
            (self.nudge_on_unexpected_cjk_output, &mut nudges.on_unexpected_cjk),
            (self.nudge_on_tool_failure_giveup, &mut nudges.on_tool_failure_giveup),
        ];
        for (own, setting) in settings {
            *setting = own.unwrap_or(*setting);
        }
        evaluation.max_completion_reprompts = self
            .max_completion_reprompts
            .unwrap_or(evaluation.max_completion_reprompts);
        evaluation.max_follow_up_passes = self.max_follow_up_passes.unwrap_or(evaluation.max_follow_up_passes);
        policy
    }
}

/// A setting that must be above zero.
struct Positive(u32);

impl FromSetting for Positive {
    const EXPECTED: &'static str = "a number above 0";

    fn from_value(value: &Value) -> Option<Self> {
        u32::from_value(value).filter(|count| *count > 0).map(Self)
    }
}

fn text(section: &Section<'_>, name: &str) -> Result<Option<Arc<str>>, ConfigError> {
    let text: Option<String> = section.get(name)?;
    Ok(text.filter(|text| !text.trim().is_empty()).map(Arc::from))
}

/// The behaviors of models, by the prefixes of their ids.
///
/// # Examples
///
/// ```
/// use rockbot_core::config::Config;
/// use rockbot_host::behavior::ModelBehaviors;
///
/// let config = Config::new().with_text("agent.json", r#"{
///     "ModelBehaviors": { "Models": {
///         "deepseek": { "NudgeOnHallucinatedToolCalls": true },
///         "deepseek/v3": { "MaxToolIterationsOverride": 12 }
///     } }
/// }"#)?;
/// let behaviors = ModelBehaviors::read(&config)?;
/// assert_eq!(behaviors.of("DeepSeek/v3-0324").max_tool_iterations, Some(12));
/// assert_eq!(behaviors.of("openrouter/deepseek-r1").nudge_on_hallucinated_tool_calls, Some(true));
/// # Ok::<_, rockbot_core::config::ConfigError>(())
/// ```
#[derive(Default)]
pub struct ModelBehaviors {
    configured: BTreeMap<String, ModelBehavior>,
    folder: Option<BehaviorFolder>,
}

impl ModelBehaviors {
    /// Creates an empty set: no model has a behavior.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the configuration's section `ModelBehaviors`.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting is invalid.
    pub fn read(config: &Config) -> Result<Self, ConfigError> {
        let models = config.section("ModelBehaviors")?.section("Models")?;
        let mut behaviors = Self::new();
        for prefix in models.names() {
            let behavior = ModelBehavior::read(&models.section(&prefix)?)?;
            behaviors.configured.insert(prefix.to_lowercase(), behavior);
        }
        Ok(behaviors)
    }

    /// Adds a behavior for models whose ids begin with `prefix`.
    #[must_use]
    pub fn with(mut self, prefix: &str, behavior: ModelBehavior) -> Self {
        self.configured.insert(prefix.to_lowercase(), behavior);
        self
    }

    /// Adds the prompts in the folders `{prefix}` of `folder`, which need not exist.
    #[must_use]
    pub fn with_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(BehaviorFolder::new(folder.into()));
        self
    }

    /// Returns `true` if no model has a behavior.
    pub(crate) fn is_empty(&self) -> bool {
        self.configured.is_empty() && self.folder.is_none()
    }

    /// Returns the behavior of the model `id`; the default one when no prefix matches.
    pub fn of(&self, id: &str) -> ModelBehavior {
        let id = id.to_lowercase();
        let configured = longest_match(&self.configured, &id).cloned().unwrap_or_default();
        let Some(texts) = self.folder.as_ref().and_then(|folder| folder.of(&id)) else {
            return configured;
        };
        ModelBehavior {
            additional_system_prompt: texts.additional_system_prompt.or(configured.additional_system_prompt),
            pre_tool_loop_prompt: texts.pre_tool_loop_prompt.or(configured.pre_tool_loop_prompt),
            ..configured
        }
    }

    /// Returns the settings of requests to the model with this id, if it has any.
    pub(crate) fn model_settings(&self, id: &str) -> Option<Arc<ModelSettings>> {
        if self.configured.is_empty() {
            return None;
        }
        longest_match(&self.configured, &id.to_lowercase())?
            .model_settings
            .clone()
    }
}

impl fmt::Debug for ModelBehaviors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefixes: Vec<_> = self.configured.keys().collect();
        f.debug_struct("ModelBehaviors")
            .field("prefixes", &prefixes)
            .field("folder", &self.folder)
            .finish()
    }
}

/// Returns the value of the longest prefix of `id`: of the whole id first, then of the id without
/// its vendor segments.
fn longest_match<'a, T>(prefixes: &'a BTreeMap<String, T>, id: &str) -> Option<&'a T> {
    let ids = std::iter::successors(Some(id), |id| id.split_once('/').map(|(_, model)| model));
    ids.filter_map(|id| {
        let matching = prefixes.iter().filter(|(prefix, _)| id.starts_with(prefix.as_str()));
        matching
            .max_by_key(|(prefix, _)| prefix.len())
            .map(|(_, behavior)| behavior)
    })
    .next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(prefixes: &[&str], id: &str, expected: Option<&str>) {
        let prefixes = prefixes.iter().map(|prefix| ((*prefix).to_owned(), *prefix)).collect();
        assert_eq!(longest_match(&prefixes, id).copied(), expected, "{id}");
    }

    #[test]
    fn the_longest_prefix_counts_with_and_without_a_vendor() {
        check(&["gpt", "gpt-4"], "gpt-4.1-mini", Some("gpt-4"));
        check(&["gpt", "gpt-4"], "openai/gpt-3.5", Some("gpt"));
        check(&["openai/gpt", "gpt-4"], "openai/gpt-4", Some("openai/gpt"));
        check(&["deepseek"], "openrouter/vendor/deepseek-v3", Some("deepseek"));
        check(&["seek"], "deepseek", None);
        check(&[], "deepseek", None);
    }

    #[test]
    fn a_behavior_changes_what_it_names_and_nothing_else() {
        let behavior = ModelBehavior {
            nudge_on_leaked_tool_syntax: Some(true),
            max_tool_iterations: Some(12),
            max_follow_up_passes: Some(3),
            ..ModelBehavior::default()
        };
        let policy = behavior.policy(PolicySnapshot::default(), None);
        let mut expected = PolicySnapshot::default();
        expected.budget.max_model_calls = 12;
        expected.nudges.on_leaked_syntax = true;
        expected.evaluation.max_follow_up_passes = 3;
        assert_eq!(policy, expected);
        let own = Budget::default().with_max_model_calls(2);
        assert_eq!(behavior.policy(PolicySnapshot::default(), Some(own)).budget, own);
    }

    #[test]
    fn how_results_are_told_is_one_of_three_ways() {
        let read = |mode: &str| {
            let text = json!({ "ModelBehaviors": { "Models": { "gpt": { "ScheduledTaskResultMode": mode } } } });
            let config = Config::new().with_text("agent.json", &text.to_string()).unwrap();
            let read = ModelBehaviors::read(&config).map(|behaviors| behaviors.of("gpt"));
            (read, config.check_unknown().unwrap().len())
        };
        for (name, mode) in [
            ("Summarize", ResultMode::Summarize),
            ("verbatimOutput", ResultMode::VerbatimOutput),
            ("SUMMARIZEWITHOUTPUT", ResultMode::SummarizeWithOutput),
        ] {
            let (behavior, unknown) = read(name);
            assert_eq!((behavior.unwrap().scheduled_task_result_mode, unknown), (mode, 0));
        }
        let error = read("Shout").0.unwrap_err().to_string();
        assert!(
            error.contains("`Summarize`, `VerbatimOutput` or `SummarizeWithOutput`"),
            "{error}"
        );
    }

    #[test]
    fn a_setting_of_the_wrong_kind_is_named() {
        let text = r#"{ "ModelBehaviors": { "Models": { "gpt-4.1": { "MaxToolIterationsOverride": 0 } } } }"#;
        let config = Config::new().with_text("agent.json", text).unwrap();
        let error = ModelBehaviors::read(&config).unwrap_err().to_string();
        assert!(
            error.contains("MaxToolIterationsOverride") && error.contains("a number above 0"),
            "{error}"
        );
    }
}
