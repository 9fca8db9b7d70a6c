//! The expectations of an answer, and the check of an answer against them.

use rockbot_core::ToolName;
use rockbot_schema::{ArgumentSchema, SchemaError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::facts::{fits, states};
use crate::subject::{Answer, MadeCall};

/// Maximum length of an answer in a failure, in characters.
const MAX_SHOWN: usize = 200;

/// The expectations of an answer. All that are set must hold; by default there must be an answer.
///
/// ```
/// use rockbot_eval::{Answer, Expect};
///
/// let expect = Expect::default().with_states(["Oslo"]).with_lacks(["sorry"]);
/// let failures = |text: &str| expect.failures(&Answer::new(text));
/// assert!(failures("It is oslo.").is_empty());
/// assert_eq!(failures("Sorry, I don't know."), [
///     "the answer does not state `Oslo`: Sorry, I don't know.",
///     "the answer contains `sorry`: Sorry, I don't know.",
/// ]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Expect {
    /// The answer without white space around it. Default: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equals: Option<String>,
    /// Texts that all stand in the answer, in upper or lower case. In a file also one text.
    #[serde(deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
    /// Facts that all stand in the answer: a number by its value (`1250` is `1,250`), anything
    /// else as whole words in upper or lower case. In a file also one fact.
    #[serde(deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<String>,
    /// Facts, at least one of them in the answer, found like [`Expect::states`].
    #[serde(deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub states_any: Vec<String>,
    /// Texts that do not stand in the answer, in upper or lower case. In a file also one text.
    #[serde(deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
    /// The JSON Schema of an answer that is JSON. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Calls that succeeded, in any order, each made apart. In a file also one call.
    #[serde(deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ExpectedCall>,
    /// Tools that are not called. In a file also one tool.
    #[serde(deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub no_calls_of: Vec<ToolName>,
    /// Maximum number of tool calls. Default: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u32>,
    /// Maximum number of tokens, of questions and answers together. Default: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// A statement about the answer that a model judges, such as `The answer is polite.` Default:
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
}

/// A call that is expected. In a file it is the name of a tool, or an object with `tool` and
/// `arguments`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "WrittenCall")]
#[non_exhaustive]
pub struct ExpectedCall {
    /// The tool.
    pub tool: ToolName,
    /// The arguments that decide: texts in upper or lower case, numbers by value, and
    /// `{"has": "word"}` for a text that contains the word. The call may have others, too.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub arguments: Value,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a call is the name of a tool, or an object with `tool` and `arguments`"
)]
enum WrittenCall {
    Name(ToolName),
    Call(NamedCall),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedCall {
    tool: ToolName,
    #[serde(default)]
    arguments: Value,
}

impl From<WrittenCall> for ExpectedCall {
    fn from(written: WrittenCall) -> Self {
        match written {
            WrittenCall::Name(tool) => Self::new(tool, Value::Null),
            WrittenCall::Call(NamedCall { tool, arguments }) => Self { tool, arguments },
        }
    }
}

impl ExpectedCall {
    /// Creates a call with the arguments that decide; [`Value::Null`] for a call with any.
    pub fn new(tool: impl Into<ToolName>, arguments: Value) -> Self {
        Self {
            tool: tool.into(),
            arguments,
        }
    }

    fn is(&self, made: &MadeCall) -> bool {
        !made.is_error && made.tool == self.tool && fits(&self.arguments, &made.arguments)
    }
}

/// Reads a list, or one item that stands for itself.
fn one_or_many<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "one item or a list of items is expected")]
    enum OneOrMany<T> {
        Many(Vec<T>),
        One(T),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::Many(items) => items,
        OneOrMany::One(item) => vec![item],
    })
}

impl Expect {
    /// Sets the answer. Default: any.
    #[must_use]
    pub fn with_equals(mut self, answer: impl Into<Option<String>>) -> Self {
        self.equals = answer.into();
        self
    }

    /// Sets texts that all stand in the answer. Default: none.
    #[must_use]
    pub fn with_contains<T: Into<String>>(mut self, texts: impl IntoIterator<Item = T>) -> Self {
        self.contains = texts.into_iter().map(Into::into).collect();
        self
    }

    /// Sets facts that all stand in the answer. Default: none.
    #[must_use]
    pub fn with_states<T: Into<String>>(mut self, facts: impl IntoIterator<Item = T>) -> Self {
        self.states = facts.into_iter().map(Into::into).collect();
        self
    }

    /// Sets facts, at least one of them in the answer. Default: none.
    #[must_use]
    pub fn with_states_any<T: Into<String>>(mut self, facts: impl IntoIterator<Item = T>) -> Self {
        self.states_any = facts.into_iter().map(Into::into).collect();
        self
    }

    /// Sets texts that do not stand in the answer. Default: none.
    #[must_use]
    pub fn with_lacks<T: Into<String>>(mut self, texts: impl IntoIterator<Item = T>) -> Self {
        self.lacks = texts.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the JSON Schema of an answer that is JSON. Default: none.
    #[must_use]
    pub fn with_schema(mut self, schema: impl Into<Option<Value>>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Sets calls that succeeded. Default: none.
    #[must_use]
    pub fn with_calls(mut self, calls: impl IntoIterator<Item = ExpectedCall>) -> Self {
        self.calls = calls.into_iter().collect();
        self
    }

    /// Sets tools that are not called. Default: none.
    #[must_use]
    pub fn with_no_calls_of<T: Into<ToolName>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.no_calls_of = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the maximum number of tool calls. Default: any number.
    #[must_use]
    pub fn with_max_calls(mut self, calls: impl Into<Option<u32>>) -> Self {
        self.max_calls = calls.into();
        self
    }

    /// Sets the maximum number of tokens. Default: any number.
    #[must_use]
    pub fn with_max_tokens(mut self, tokens: impl Into<Option<u64>>) -> Self {
        self.max_tokens = tokens.into();
        self
    }

    /// Sets a statement about the answer that a model judges. Default: none.
    #[must_use]
    pub fn with_judge(mut self, statement: impl Into<Option<String>>) -> Self {
        self.judge = statement.into();
        self
    }

    /// Returns a sentence for each expectation that an answer misses. The statement for a judge is
    /// left out: [`Evaluation`](crate::Evaluation) asks a model about it.
    pub fn failures(&self, answer: &Answer) -> Vec<String> {
        let mut failures = self.of_text(&answer.text);
        failures.extend(self.of_calls(&answer.calls));
        let spent = answer.tokens;
        if let Some(most) = self.max_tokens.filter(|most| spent > *most) {
            failures.push(format!("the answer took {spent} tokens, and {most} are the most"));
        }
        failures
    }

    /// Checks that the schema can be used.
    pub(crate) fn check_schema(&self) -> Result<(), SchemaError> {
        self.schema
            .as_ref()
            .map_or(Ok(()), |schema| ArgumentSchema::compile(schema).map(drop))
    }

    fn of_text(&self, text: &str) -> Vec<String> {
        let lower = text.to_lowercase();
        let has = |part: &str| lower.contains(&part.to_lowercase());
        let mut failures = Vec::new();
        if let Some(answer) = self.equals.as_ref().filter(|answer| text.trim() != answer.trim()) {
            failures.push(format!("the answer is not `{answer}`"));
        }
        let missing = self.contains.iter().filter(|part| !has(part));
        failures.extend(missing.map(|part| format!("the answer does not contain `{part}`")));
        let unsaid = self.states.iter().filter(|fact| !states(text, fact));
        failures.extend(unsaid.map(|fact| format!("the answer does not state `{fact}`")));
        if !self.states_any.is_empty() && !self.states_any.iter().any(|fact| states(text, fact)) {
            failures.push(format!("the answer states none of `{}`", self.states_any.join("`, `")));
        }
        let present = self.lacks.iter().filter(|part| has(part));
        failures.extend(present.map(|part| format!("the answer contains `{part}`")));
        failures.extend(self.of_json(text));
        let shown: String = text.chars().take(MAX_SHOWN).collect();
        failures
            .into_iter()
            .map(|failure| format!("{failure}: {shown}"))
            .collect()
    }

    fn of_json(&self, text: &str) -> Option<String> {
        // A schema that cannot be used was refused with the dataset.
        let schema = ArgumentSchema::compile(self.schema.as_ref()?).ok()?;
        let problem = schema.check(text.trim()).err()?;
        Some(format!("the answer does not fit the schema ({problem})"))
    }

    fn of_calls(&self, made: &[MadeCall]) -> Vec<String> {
        let mut failures = Vec::new();
        let mut left: Vec<&MadeCall> = made.iter().collect();
        for expected in &self.calls {
            match left.iter().position(|call| expected.is(call)) {
                Some(at) => drop(left.remove(at)),
                None if expected.arguments.is_null() => {
                    failures.push(format!("no call of `{}` succeeded", expected.tool))
                }
                None => failures.push(format!(
                    "no call of `{}` with {} succeeded",
                    expected.tool, expected.arguments
                )),
            }
        }
        let unwanted = self
            .no_calls_of
            .iter()
            .filter(|tool| made.iter().any(|call| call.tool == **tool));
        failures.extend(unwanted.map(|tool| format!("`{tool}` was called")));
        let number = made.len();
        if let Some(most) = self.max_calls.filter(|most| number > *most as usize) {
            failures.push(format!("{number} calls were made, and {most} are the most"));
        }
        failures
    }
}
