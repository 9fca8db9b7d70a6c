//! Arguments that do not match the schema of their tool, and their one repair by a model of the
//! low tier.

use rockbot_core::chat::{ChatMessage, ChatRequest, ModelSettings, ModelTier, Role};
use rockbot_core::content::{Content, Provenance};
use rockbot_core::tool::ToolSnapshot;
use serde_json::{Map, Value};

use super::definition::{Definition, Work};
use super::keep::cut;
use super::progress::Progress;
use super::template;

/// The answer of a model that has no values to correct the arguments with.
const NO_CORRECTION: &str = "NO_CORRECTION";

/// Maximum length of each earlier output that the model reads, in bytes.
const MAX_EARLIER: usize = 2_000;

const DIRECTIVE: &str = "You correct the arguments of one call of a tool, so that they match its schema. Use only values \
    that are in the arguments or in the context; never make one up. Answer with the corrected arguments, a JSON object, \
    and nothing else. If a required value is nowhere to be found, answer exactly NO_CORRECTION.";

/// A call whose arguments do not match.
#[derive(Debug)]
pub(super) struct Misfit<'a> {
    pub(super) step: usize,
    pub(super) tool: &'a str,
    pub(super) arguments: String,
    pub(super) problem: String,
}

/// Returns the calls whose arguments are known before anything runs and do not match.
pub(super) fn misfits<'a>(definition: &'a Definition, tools: &ToolSnapshot) -> Vec<Misfit<'a>> {
    let steps = definition.steps.iter().enumerate();
    let checked = steps.filter_map(|(at, step)| {
        let Work::Direct { tool, params } = &step.work else {
            return None;
        };
        let entry = tools.find(tool)?;
        let is_known = !params.values().any(template::has_template);
        let arguments = serde_json::to_string(params).ok().filter(|_| is_known)?;
        let problem = entry.arguments().check(&arguments).err()?;
        Some(Misfit {
            step: at,
            tool,
            arguments,
            problem: problem.to_string(),
        })
    });
    checked.collect()
}

impl Misfit<'_> {
    /// Returns the question to the model.
    pub(super) fn question(&self, progress: &Progress<'_>) -> ChatRequest {
        let Self {
            tool,
            arguments,
            problem,
            ..
        } = self;
        let outputs = progress.outputs();
        let earlier: String = outputs
            .all()
            .map(|(step, text)| format!("\n### Step: {step}\n{}", cut(text, MAX_EARLIER)))
            .collect();
        let description = &progress.definition.description;
        let text =
            format!("Tool: {tool}\nArguments: {arguments}\nProblem:\n{problem}\n\nContext: {description}{earlier}");
        let from = Provenance::labelled("wisp", &progress.label);
        let task = ChatMessage::new(Role::User, Content::from(text), from);
        let settings = ModelSettings::new().with_temperature(0.0);
        ChatRequest::new([ChatMessage::system(DIRECTIVE), task])
            .with_tier(ModelTier::Low)
            .with_settings(settings)
    }

    /// Returns the arguments of the model's answer, if they match.
    pub(super) fn corrected(&self, answer: &str, tools: &ToolSnapshot) -> Option<Map<String, Value>> {
        if answer.contains(NO_CORRECTION) {
            return None;
        }
        let object = answer.get(answer.find('{')?..=answer.rfind('}')?)?;
        let params: Map<String, Value> = serde_json::from_str(object).ok()?;
        let is_checked = tools
            .find(self.tool)
            .is_none_or(|entry| entry.arguments().check(object).is_ok());
        is_checked.then_some(params)
    }
}
