//! The errors of definitions, in words that tell the model the correction.

use super::limits::{MAX_STEPS, MAX_WISPS};
use super::template::TemplateError;

/// An error of the argument `definitions`. Nothing has run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DefinitionError {
    /// The text is too long, too deep, or no JSON.
    #[error("{0}")]
    Json(String),
    /// The argument is missing.
    #[error("`definitions` is missing: give an array of definitions, each with `description` and `steps`")]
    Missing,
    /// The array is empty.
    #[error("`definitions` is empty: give at least one definition")]
    Empty,
    /// The array is too long.
    #[error("{0} definitions are too many: at most {MAX_WISPS} run in one call, so split them into several calls")]
    TooMany(usize),
    /// One definition is wrong.
    #[error("definition {number}: {problem}. Nothing has run; correct it and call again")]
    Definition { number: usize, problem: DefinitionProblem },
}

/// An error of one definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DefinitionProblem {
    /// The JSON has another shape.
    #[error("{0}")]
    Shape(String),
    /// The description is missing.
    #[error("`description` is missing: say in a few words what the wisp does")]
    NoDescription,
    /// There are no steps.
    #[error("`steps` is empty: give at least one step")]
    NoSteps,
    /// There are too many steps.
    #[error("{0} steps are too many: a wisp has at most {MAX_STEPS}, so make several wisps of it")]
    TooManySteps(usize),
    /// One step is wrong.
    #[error("step {step}: {problem}")]
    Step { step: String, problem: StepProblem },
}

/// An error of one step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum StepProblem {
    /// The id is no name.
    #[error("`id` has 1 to 64 letters, digits, `-` and `_`")]
    Id,
    /// An earlier step has the same id.
    #[error("an earlier step has the same `id`: give each step its own")]
    Duplicate,
    /// The mode is unknown.
    #[error("`mode` is `Direct` or `Llm`, not `{0}`")]
    Mode(String),
    /// The gateway is unknown.
    #[error("`gateway` is `Mcp`, `A2A`, `Script` or `Web`, not `{0}`; leave it out to call another tool by its name")]
    Gateway(String),
    /// A field is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// The arguments are no object.
    #[error("`params` is an object with the arguments of the tool")]
    Params,
    /// The web gateway has no such tool.
    #[error("`tool` of the gateway `Web` is `web_search` or `web_browse`, not `{0}`")]
    Web(String),
    /// The language is no name.
    #[error("`language` is a name such as `python`")]
    Language,
    /// The tool does not exist.
    #[error("there is no tool `{tool}`{near}")]
    Tool { tool: String, near: String },
    /// The answer of another agent cannot be captured.
    #[error("a step of the gateway `A2A` has no `output_to`: its result is an acknowledgement, not the answer")]
    A2aOutput,
    /// A call takes its input from its arguments.
    #[error("`input_from` is for steps with `mode` `Llm`: put `{{{{steps.ID.result}}}}` into `params` instead")]
    DirectInput,
    /// The input is unknown.
    #[error(
        "`input_from` names no earlier output: `{0}` is no template, no id of an earlier step, and no `output_to` of one"
    )]
    InputFrom(String),
    /// The action is unknown.
    #[error("`on_failure.action` is `abort` or `skip_to`, not `{0}`")]
    Action(String),
    /// The target of a skip is unknown, or not behind the step.
    #[error("`on_failure.skip_to` names no later step: `{target}` is not one of `{}`", later.join("`, `"))]
    SkipTo { target: String, later: Vec<String> },
    /// A template is wrong.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

impl StepProblem {
    /// Returns the error of a definition whose step at the position `at` has this problem.
    pub(super) fn in_step(self, id: &str, at: usize) -> DefinitionProblem {
        let id: String = id.chars().take(64).collect();
        let step = if id.is_empty() {
            (at + 1).to_string()
        } else {
            format!("`{id}`")
        };
        DefinitionProblem::Step { step, problem: self }
    }
}
