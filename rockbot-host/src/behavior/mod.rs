//! How a host treats particular models: what it tells them, what it corrects, and how far it lets them go.
//!
//! A behavior stands under the beginning of a model's id: in the configuration under `ModelBehaviors.Models`, and as
//! texts in the folders `model-behaviors/{prefix}/` of the data folder. The longest beginning that fits counts, without
//! regard to case, of the id as it is and of the id without its vendor segments: `deepseek` fits
//! `openrouter/deepseek-v3`, too. Texts in a folder take the place of those in the configuration, and are read again
//! within half a minute when they change.

mod client;
mod folder;
mod result_mode;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rockbot_core::config::{Config, ConfigError, FromSetting, Section, Value};
use rockbot_core::turn::Budget;

use crate::turn::PolicySnapshot;
pub(crate) use client::ModelBehaviorClient;
use folder::BehaviorFolder;
pub use result_mode::ScheduledTaskResultMode;

/// How a host treats a model. What is `None` is as the host says for all models.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ModelBehavior {
    /// Stands after the instructions, as a system message of its own.
    pub additional_system_prompt: Option<Arc<str>>,
    /// Stands at the end of each request in which the model may call tools.
    pub pre_tool_loop_prompt: Option<Arc<str>>,
    /// Whether the model calls tools in plain text, having no native calls or being bad at them: small models that were
    /// measured solve more tasks so (`BENCHMARKS.md`), and are better off without nudges. Default false.
    pub text_based_tool_calling: bool,
    /// [`Nudges::on_hallucinated_calls`](crate::turn::Nudges::on_hallucinated_calls).
    pub nudge_on_hallucinated_tool_calls: Option<bool>,
    /// [`Nudges::on_leaked_syntax`](crate::turn::Nudges::on_leaked_syntax).
    pub nudge_on_leaked_tool_syntax: Option<bool>,
    /// [`Nudges::on_unexpected_cjk`](crate::turn::Nudges::on_unexpected_cjk).
    pub nudge_on_unexpected_cjk_output: Option<bool>,
    /// [`Nudges::on_tool_failure_giveup`](crate::turn::Nudges::on_tool_failure_giveup).
    pub nudge_on_tool_failure_giveup: Option<bool>,
    /// [`Budget::max_model_calls`].
    pub max_tool_iterations: Option<u32>,
    /// How many characters a tool's result may have to stay in the conversation.
    pub tool_result_chunking_threshold: Option<usize>,
    /// [`Evaluation::max_completion_reprompts`](crate::turn::Evaluation::max_completion_reprompts).
    pub max_completion_reprompts: Option<u32>,
    /// [`Evaluation::max_follow_up_passes`](crate::turn::Evaluation::max_follow_up_passes).
    pub max_follow_up_passes: Option<u32>,
    /// How the answers of turns that a schedule began tell what their tools returned. Default
    /// [`ScheduledTaskResultMode::Summarize`].
    pub scheduled_task_result_mode: ScheduledTaskResultMode,
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
        })
    }

    /// The settings of a turn with this model; `budget` is the one that its message brings, which nothing raises.
    pub(crate) fn policy(&self, host: PolicySnapshot, budget: Option<Budget>) -> PolicySnapshot {
        let mut policy = host;
        if let Some(calls) = self.max_tool_iterations {
            policy.budget.max_model_calls = calls;
        }
        policy.budget = budget.unwrap_or(policy.budget);
        policy.result_threshold = self.tool_result_chunking_threshold.or(policy.result_threshold);
        let (nudges, evaluation) = (&mut policy.nudges, &mut policy.evaluation);
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

/// A number above zero.
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

/// The behaviors of all models that have one.
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
    /// No model has one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Those of the configuration's section `ModelBehaviors`.
    ///
    /// # Errors
    ///
    /// Fails when a setting cannot be used.
    pub fn read(config: &Config) -> Result<Self, ConfigError> {
        let models = config.section("ModelBehaviors")?.section("Models")?;
        let mut behaviors = Self::new();
        for prefix in models.names() {
            let behavior = ModelBehavior::read(&models.section(&prefix)?)?;
            behaviors.configured.insert(prefix.to_lowercase(), behavior);
        }
        Ok(behaviors)
    }

    /// With this one for models whose ids begin with `prefix`.
    #[must_use]
    pub fn with(mut self, prefix: &str, behavior: ModelBehavior) -> Self {
        self.configured.insert(prefix.to_lowercase(), behavior);
        self
    }

    /// With the texts in the folders `{prefix}` of `folder`, which need not be there.
    #[must_use]
    pub fn with_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(BehaviorFolder::new(folder.into()));
        self
    }

    /// Whether no model has one.
    pub(crate) fn is_empty(&self) -> bool {
        self.configured.is_empty() && self.folder.is_none()
    }

    /// The behavior of the model `id`.
    pub fn of(&self, id: &str) -> ModelBehavior {
        let id = id.to_lowercase();
        let configured = longest(&self.configured, &id).cloned().unwrap_or_default();
        let Some(texts) = self.folder.as_ref().and_then(|folder| folder.of(&id)) else {
            return configured;
        };
        ModelBehavior {
            additional_system_prompt: texts.additional_system_prompt.or(configured.additional_system_prompt),
            pre_tool_loop_prompt: texts.pre_tool_loop_prompt.or(configured.pre_tool_loop_prompt),
            ..configured
        }
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

/// What stands under the longest beginning of `id`; of the id as it is first, then without its vendor segments.
fn longest<'a, T>(prefixes: &'a BTreeMap<String, T>, id: &str) -> Option<&'a T> {
    let ids = std::iter::successors(Some(id), |id| id.split_once('/').map(|(_, model)| model));
    ids.filter_map(|id| {
        let fitting = prefixes.iter().filter(|(prefix, _)| id.starts_with(prefix.as_str()));
        fitting
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
        assert_eq!(longest(&prefixes, id).copied(), expected, "{id}");
    }

    #[test]
    fn the_longest_beginning_counts_with_and_without_a_vendor() {
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
        let own = Budget {
            max_model_calls: 2,
            ..Budget::default()
        };
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
            ("Summarize", ScheduledTaskResultMode::Summarize),
            ("verbatimOutput", ScheduledTaskResultMode::VerbatimOutput),
            ("SUMMARIZEWITHOUTPUT", ScheduledTaskResultMode::SummarizeWithOutput),
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
