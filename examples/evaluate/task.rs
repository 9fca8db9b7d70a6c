//! A task and its check: by the calls that were made and by names and numbers in the answer,
//! never by wording and never by another model's opinion.

use serde_json::Value;

use super::facts::{admits, names_tool, states};
use super::world::{changes_something, keeps_something};

/// The ability that a task tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    RightTool,
    RightArguments,
    NoTool,
    SeveralCalls,
    LongResults,
    FailingTools,
    Everyday,
    Parallel,
}

impl Kind {
    pub(crate) const ALL: [Self; 8] = [
        Self::RightTool,
        Self::RightArguments,
        Self::NoTool,
        Self::SeveralCalls,
        Self::LongResults,
        Self::FailingTools,
        Self::Everyday,
        Self::Parallel,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::RightTool => "right-tool",
            Self::RightArguments => "right-arguments",
            Self::NoTool => "no-tool",
            Self::SeveralCalls => "several-calls",
            Self::LongResults => "long-results",
            Self::FailingTools => "failing-tools",
            Self::Everyday => "everyday",
            Self::Parallel => "parallel",
        }
    }

    /// Returns `true` if an unexpected call counts as wrong even when it only reads.
    fn is_strict(self) -> bool {
        matches!(self, Self::RightTool | Self::NoTool)
    }
}

/// A tool that fails during a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Once(&'static str),
    Always(&'static str),
}

/// A call that a task requires. An argument `{"has": "word"}` may contain more than the word.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
}

/// One request of a user, with its check.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) kind: Kind,
    /// The conversation that this request is a part of; `None` for a request that is its own.
    pub(crate) conversation: Option<&'static str>,
    pub(crate) asks: &'static str,
    /// The required calls, in any order.
    pub(crate) calls: Vec<Expected>,
    /// The facts that the answer must state: one alternative of each entry.
    pub(crate) facts: Vec<&'static [&'static str]>,
    /// The answer must admit that something could not be done.
    pub(crate) must_admit: bool,
    pub(crate) fault: Option<Fault>,
}

impl Task {
    pub(crate) fn new(kind: Kind, id: impl Into<String>, asks: &'static str) -> Self {
        Self {
            id: id.into(),
            kind,
            conversation: None,
            asks,
            calls: Vec::new(),
            facts: Vec::new(),
            must_admit: false,
            fault: None,
        }
    }

    /// Returns the name of the conversation, or of the request if it is its own.
    pub(crate) fn name(&self) -> &str {
        self.conversation.unwrap_or(&self.id)
    }

    /// Requires this call.
    pub(crate) fn calls(mut self, tool: &'static str, arguments: Value) -> Self {
        self.calls.push(Expected { tool, arguments });
        self
    }

    /// Requires the answer to state one of these names or numbers.
    pub(crate) fn states(mut self, alternatives: &'static [&'static str]) -> Self {
        self.facts.push(alternatives);
        self
    }

    /// Requires the answer to admit that something could not be done.
    pub(crate) fn admits(mut self) -> Self {
        self.must_admit = true;
        self
    }

    pub(crate) fn fails_once(mut self, tool: &'static str) -> Self {
        self.fault = Some(Fault::Once(tool));
        self
    }

    pub(crate) fn always_fails(mut self, tool: &'static str) -> Self {
        self.fault = Some(Fault::Always(tool));
        self.admits()
    }

    /// Checks whether `seen` solves the task; the error says why not.
    pub(crate) fn check(&self, seen: &Seen) -> Result<(), String> {
        if let Some(why) = &seen.no_answer {
            return Err(format!("no answer: {why}"));
        }
        self.check_calls(&seen.calls)?;
        let missing = |fact: &&&[&str]| !fact.iter().any(|alternative| states(&seen.text, alternative));
        if let Some(fact) = self.facts.iter().find(missing) {
            return Err(format!("the answer does not state {}", fact.join(" or ")));
        }
        if self.must_admit && !admits(&seen.text) {
            Err("the answer does not say that it could not be done".to_owned())
        } else {
            Ok(())
        }
    }

    /// Reports whether the answer passes over a change that was asked for and not made, or names a
    /// tool that was not called: its user believes what did not happen.
    pub(crate) fn is_hollow(&self, seen: &Seen) -> bool {
        let is_made = |expected: &Expected| seen.calls.iter().any(|call| !call.is_error && expected.fits(call));
        let is_missed = |expected: &Expected| keeps_something(expected.tool) && !is_made(expected);
        let is_hollow = self.calls.iter().any(is_missed) || (seen.calls.is_empty() && names_tool(&seen.text));
        seen.no_answer.is_none() && is_hollow && !admits(&seen.text)
    }

    fn check_calls(&self, made: &[SeenCall]) -> Result<(), String> {
        let mut left: Vec<_> = made.iter().collect();
        for expected in &self.calls {
            let failed = self.fault == Some(Fault::Always(expected.tool));
            let fits = |call: &&SeenCall| call.is_error == failed && expected.fits(call);
            let at = left.iter().position(fits);
            let at = at.ok_or_else(|| format!("no call {} {}", expected.tool, expected.arguments))?;
            left.remove(at);
        }
        let unwanted = left.iter().find(|call| self.is_unwanted(call));
        unwanted.map_or(Ok(()), |call| {
            Err(format!("unwanted call {} {}", call.tool, call.arguments))
        })
    }

    fn is_unwanted(&self, call: &SeenCall) -> bool {
        let is_expected = self.calls.iter().any(|expected| expected.tool == call.tool);
        let did_something = changes_something(&call.tool) && !call.is_error;
        did_something || (self.kind.is_strict() && !is_expected && !is_bookkeeping(&call.tool))
    }
}

/// Returns `true` for the host's own bookkeeping tools, which no task expects.
fn is_bookkeeping(tool: &str) -> bool {
    ["task_create", "task_update"].contains(&tool)
}

impl Expected {
    fn fits(&self, call: &SeenCall) -> bool {
        let expected = self.arguments.as_object().into_iter().flatten();
        call.tool == self.tool
            && expected
                .into_iter()
                .all(|(name, value)| fits(value, &call.arguments[name.as_str()]))
    }
}

/// Compares an argument with the expected one: texts ignoring case and outer white space, numbers
/// by value.
fn fits(expected: &Value, argument: &Value) -> bool {
    let plain = |text: &str| text.trim().to_lowercase();
    match (expected["has"].as_str(), expected, argument) {
        (Some(word), _, Value::String(text)) => plain(text).contains(&plain(word)),
        (None, Value::String(word), Value::String(text)) => plain(text) == plain(word),
        (None, Value::Number(number), Value::Number(other)) => number.as_f64() == other.as_f64(),
        _ => false,
    }
}

/// The observed behaviour of a turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// The finished calls, in order.
    pub(crate) calls: Vec<SeenCall>,
    /// The reason why there is no answer.
    pub(crate) no_answer: Option<String>,
    pub(crate) text: String,
}

#[derive(Debug, Clone)]
pub(crate) struct SeenCall {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) is_error: bool,
}
