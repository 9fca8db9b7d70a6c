//! The definition of a wisp: a static list of steps, and the checks that it passes before
//! anything runs.

use rockbot_core::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::limits::MAX_STEPS;
use super::problem::{DefinitionProblem, StepProblem};
use super::template;

/// Maximum length of an id, in characters.
const MAX_ID: usize = 64;

/// A wisp as it runs: checked, with each step's gateway resolved to a tool. The message of a
/// wisp's turn is its JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Definition {
    pub(super) description: String,
    /// Further tools of the steps that ask a model: names of tools, or of MCP servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<String>,
    pub(super) steps: Vec<Step>,
}

/// A step of a wisp.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Step {
    pub(super) id: String,
    pub(super) work: Work,
    /// Name of the output, for `input_from` of later steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output_to: Option<String>,
    /// Step to go on with when this step fails; `None` ends the wisp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) skip_to: Option<String>,
}

/// The work of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "mode")]
pub(super) enum Work {
    /// A call of a tool.
    Direct { tool: String, params: Map<String, Value> },
    /// A question to a model of the low tier.
    #[serde(rename_all = "camelCase")]
    Llm {
        prompt: String,
        /// A template or the name of an output; `None` means the outputs of all earlier steps.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_from: Option<String>,
    },
}

impl Definition {
    /// Returns the digest that identifies the definition.
    pub(super) fn hash(&self) -> String {
        let json = serde_json::to_string(self).unwrap_or_default();
        Digest::of([json]).short()
    }

    /// Returns the position of a step.
    pub(super) fn position(&self, id: &str) -> Option<usize> {
        self.steps.iter().position(|step| step.id.eq_ignore_ascii_case(id))
    }

    /// Checks all that can be known before anything runs.
    pub(super) fn check(&self) -> Result<(), DefinitionProblem> {
        if self.description.trim().is_empty() {
            return Err(DefinitionProblem::NoDescription);
        }
        if self.steps.is_empty() {
            return Err(DefinitionProblem::NoSteps);
        }
        if self.steps.len() > MAX_STEPS {
            return Err(DefinitionProblem::TooManySteps(self.steps.len()));
        }
        for (at, step) in self.steps.iter().enumerate() {
            self.check_step(at, step)
                .map_err(|problem| problem.in_step(&step.id, at))?;
        }
        Ok(())
    }

    fn check_step(&self, at: usize, step: &Step) -> Result<(), StepProblem> {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if step.id.is_empty() || step.id.len() > MAX_ID || !step.id.chars().all(is_legal) {
            return Err(StepProblem::Id);
        }
        if self.position(&step.id) != Some(at) {
            return Err(StepProblem::Duplicate);
        }
        if let Some(target) = &step.skip_to
            && self.position(target).is_none_or(|target| target <= at)
        {
            let later = self.steps[at + 1..].iter().map(|step| step.id.clone()).collect();
            return Err(StepProblem::SkipTo {
                target: target.clone(),
                later,
            });
        }
        self.check_texts(at, step)
    }

    fn check_texts(&self, at: usize, step: &Step) -> Result<(), StepProblem> {
        let earlier: Vec<&str> = self.steps[..at].iter().map(|step| step.id.as_str()).collect();
        match &step.work {
            Work::Direct { params, .. } => params
                .values()
                .try_for_each(|value| template::check_value(value, &earlier))?,
            Work::Llm { prompt, input_from } => {
                if prompt.trim().is_empty() {
                    return Err(StepProblem::Missing("prompt"));
                }
                template::check(prompt, &earlier)?;
                if let Some(from) = input_from {
                    template::check(from, &earlier)?;
                    if self.input_of(at, from).is_none() {
                        return Err(StepProblem::InputFrom(from.clone()));
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the template that `from`, the `input_from` of the step at `at`, stands for: `from`
    /// itself, or the result of the earlier step that has `from` as the name of its output or as
    /// its id.
    pub(super) fn input_of(&self, at: usize, from: &str) -> Option<String> {
        if template::has_template(&Value::from(from)) {
            return Some(from.to_owned());
        }
        let mut earlier = self.steps[..at].iter().rev();
        let named = earlier.find(|step| step.output_to.as_deref() == Some(from) || step.id.eq_ignore_ascii_case(from));
        named.map(|step| format!("{{{{steps.{}.result}}}}", step.id))
    }
}
