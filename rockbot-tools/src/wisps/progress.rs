//! The progress of a wisp, read from its conversation. The same conversation is always read
//! alike, so after a restart a wisp goes on with its next step.

use std::collections::BTreeMap;
use std::sync::Arc;

use rockbot_core::chat::{ChatMessage, Role, ToolCall};
use rockbot_core::trust::Label;
use serde_json::{Map, Value};

use super::definition::{Definition, Step, Work};
use super::failure::{Category, Failure};
use super::keep::{KEEP, Kept};
use super::output::Outputs;
use super::template::{self, TemplateError};

/// The beginning of errors of calls whose arguments do not match. Such a call has not run.
const MISFIT: &str = "invalid arguments for `";

/// The beginning of the ids of the interpreter's own calls.
pub(super) const OWN_ID: &str = "wisp-";

/// The progress of a wisp.
#[derive(Debug)]
pub(super) struct Progress<'a> {
    pub(super) definition: &'a Definition,
    /// Ends of the steps before the current one.
    ends: Vec<StepEnd>,
    has_failed: bool,
    /// Arguments that were corrected before anything ran.
    corrected: BTreeMap<usize, Map<String, Value>>,
    pub(super) open: Open,
    /// Label of the definition and of all results so far.
    pub(super) label: Label,
}

/// The end of a step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StepEnd {
    Done(String),
    Skipped,
    Failed(Failure),
}

/// The state of the current step.
#[derive(Debug, Default, PartialEq)]
pub(super) enum Open {
    #[default]
    Fresh,
    /// The call did not run, because the arguments do not match the schema.
    Misfit { arguments: Arc<str>, problem: String },
    /// The model of the step has called tools: its messages, and the results.
    Asking(Vec<Arc<ChatMessage>>),
}

/// The current step, with its templates replaced.
#[derive(Debug, PartialEq)]
pub(super) enum Task {
    Call { tool: String, arguments: String },
    Question { prompt: String, input: Option<String> },
}

/// Returns the id of the call of a step.
pub(super) fn call_id(step: usize, is_corrected: bool) -> String {
    let suffix = if is_corrected { "-corrected" } else { "" };
    format!("{OWN_ID}{step}{suffix}")
}

impl<'a> Progress<'a> {
    /// Reads the progress from the messages behind the assignment, whose label is `label`.
    pub(super) fn read(definition: &'a Definition, label: Label, messages: &[Arc<ChatMessage>]) -> Self {
        let mut progress = Self {
            definition,
            ends: Vec::new(),
            has_failed: false,
            corrected: BTreeMap::new(),
            open: Open::Fresh,
            label,
        };
        progress.settle();
        for (at, message) in messages.iter().enumerate() {
            if message.role == Role::Assistant && !message.tool_calls.is_empty() {
                let behind = messages[at + 1..].iter();
                let own = behind.take_while(|message| message.role != Role::Assistant);
                let results: Vec<_> = own.filter(|message| message.role == Role::Tool).cloned().collect();
                progress.apply(message, &results);
            }
        }
        progress
    }

    /// Returns the current step with its position; `None` once the wisp has ended.
    pub(super) fn current(&self) -> Option<(usize, &'a Step)> {
        let at = self.ends.len();
        let step = self.definition.steps.get(at).filter(|_| !self.has_failed)?;
        Some((at, step))
    }

    /// Returns `true` if the wisp ended with a failure.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Returns the steps that ended.
    pub(super) fn ended(&self) -> impl Iterator<Item = (&'a Step, &StepEnd)> {
        self.definition.steps.iter().zip(&self.ends)
    }

    /// Returns the ids of the steps that succeeded, each with its output.
    pub(super) fn completed(&self) -> impl Iterator<Item = (&'a str, &str)> {
        self.ended().filter_map(|(step, end)| match end {
            StepEnd::Done(text) => Some((step.id.as_str(), text.as_str())),
            _ => None,
        })
    }

    /// Returns the outputs so far.
    pub(super) fn outputs(&self) -> Outputs<'_> {
        let mut outputs = Outputs::default();
        for (step, end) in self.ended() {
            let text = match end {
                StepEnd::Done(text) => Some(text.as_str()),
                _ => None,
            };
            outputs.push(&step.id, text, step.output_to.as_deref());
        }
        outputs
    }

    /// Returns the work of a step with its templates replaced.
    pub(super) fn task(&self, at: usize, step: &Step) -> Result<Task, TemplateError> {
        let outputs = self.outputs();
        match &step.work {
            Work::Direct { tool, params } => {
                let params = self.corrected.get(&at).unwrap_or(params);
                let resolved = template::resolve_params(params, &outputs)?;
                let arguments = Value::Object(resolved).to_string();
                let tool = tool.clone();
                Ok(Task::Call { tool, arguments })
            }
            Work::Llm { prompt, input_from } => {
                let from = input_from.as_ref().and_then(|from| self.definition.input_of(at, from));
                let input = from.map(|from| template::resolve(&from, &outputs)).transpose()?;
                let prompt = template::resolve(prompt, &outputs)?;
                Ok(Task::Question { prompt, input })
            }
        }
    }

    /// Fails the call whose arguments could not be corrected.
    pub(super) fn give_up_misfit(&mut self) {
        if let Open::Misfit { problem, .. } = &mut self.open {
            let problem = std::mem::take(problem);
            self.fail(Failure::new(Category::Structural, problem));
        }
    }

    /// Applies an answer of the interpreter, with the results of its calls.
    fn apply(&mut self, message: &Arc<ChatMessage>, results: &[Arc<ChatMessage>]) {
        results.iter().for_each(|result| self.label.join(&result.label()));
        let kept: Vec<_> = message
            .tool_calls
            .iter()
            .filter(|call| call.name.as_str() == KEEP)
            .collect();
        if !kept.is_empty() {
            kept.into_iter().filter_map(Kept::of).for_each(|kept| self.keep(kept));
            return;
        }
        let Some(call) = message.tool_calls.first() else { return };
        let is_corrected = call.id.as_str() == call_id(self.ends.len(), true);
        if !is_corrected {
            self.give_up_misfit();
        }
        match self.current() {
            Some((
                _,
                Step {
                    work: Work::Llm { .. }, ..
                },
            )) => {
                let messages = std::iter::once(message).chain(results).cloned();
                match &mut self.open {
                    Open::Asking(asked) => asked.extend(messages),
                    open => *open = Open::Asking(messages.collect()),
                }
            }
            Some(_) => self.returned(call, results, is_corrected),
            None => {}
        }
    }

    fn keep(&mut self, kept: Kept) {
        let step = match &kept {
            Kept::Params { step, params } => {
                self.corrected.insert(*step, params.clone());
                return;
            }
            Kept::Output { step, .. } | Kept::Failed { step, .. } => *step,
        };
        if step != self.ends.len() {
            self.give_up_misfit();
        }
        match kept {
            Kept::Output { text, .. } => self.finish(StepEnd::Done(text)),
            Kept::Failed { text, .. } => self.fail(Failure::new(Category::Judgment, text)),
            Kept::Params { .. } => {}
        }
    }

    /// Applies the result of a call.
    fn returned(&mut self, call: &ToolCall, results: &[Arc<ChatMessage>], is_corrected: bool) {
        let mut results = results.iter();
        let Some(result) = results.find(|result| result.tool_call_id.as_ref() == Some(&call.id)) else {
            return;
        };
        let text = result.text().into_owned();
        let was_corrected = is_corrected || self.corrected.contains_key(&self.ends.len());
        if result.is_error && text.starts_with(MISFIT) && !was_corrected {
            self.open = Open::Misfit {
                arguments: call.arguments.clone(),
                problem: text,
            };
            return;
        }
        let failure = if result.is_error {
            Some(Failure::of_tool(&text))
        } else {
            Failure::stated_in(&text)
        };
        match failure {
            Some(failure) => self.fail(failure),
            None => self.finish(StepEnd::Done(text)),
        }
    }

    fn finish(&mut self, end: StepEnd) {
        self.open = Open::Fresh;
        self.ends.push(end);
        self.settle();
    }

    /// Ends the current step as failed. The wisp ends, too, unless the step names a step to go on
    /// with.
    fn fail(&mut self, failure: Failure) {
        let Some((at, step)) = self.current() else { return };
        let target = step.skip_to.as_ref().and_then(|id| self.definition.position(id));
        self.has_failed = target.is_none();
        self.open = Open::Fresh;
        self.ends.push(StepEnd::Failed(failure));
        let skipped = target.map_or(0, |target| target.saturating_sub(at + 1));
        self.ends.extend((0..skipped).map(|_| StepEnd::Skipped));
        self.settle();
    }

    /// Fails the current step if its templates have no values. Each failure ends a step, so the
    /// number of steps bounds the recursion through [`fail`](Self::fail).
    fn settle(&mut self) {
        if let Some((at, step)) = self.current()
            && let Err(error) = self.task(at, step)
        {
            self.fail(Failure::new(Category::Data, error.to_string()));
        }
    }
}
