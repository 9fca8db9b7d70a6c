//! The result of parsing an answer: text for a person, calls, and malformed calls.

use std::ops::Range;
use std::sync::Arc;

/// An answer, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TextAnswer {
    /// The text for a person. Unchanged when nothing was found in the answer; otherwise the
    /// paragraphs before and around the calls, without malformed calls and hallucinated results.
    pub text: String,
    /// The calls, in the order of the answer. Their tools are known and their arguments are JSON
    /// objects, but are not validated against a schema.
    pub calls: Vec<TextCall>,
    /// Texts that were meant to be calls and cannot be executed, in order.
    pub malformed: Vec<MalformedCall>,
    /// A text for the model about all malformed calls, of a few hundred bytes; `None` without any.
    /// Sent as the next message, it asks the model to repeat the call in a form that can be parsed.
    pub correction: Option<String>,
    /// Byte offset where the model began to write tool results itself. Everything from there on is
    /// dropped, calls included. `None` when it wrote none.
    pub hallucinated_from: Option<usize>,
}

impl TextAnswer {
    /// Returns an answer that is text only, such as an answer that was cut off and must not be
    /// parsed.
    pub fn of_text(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

/// A call that a model wrote into its text.
///
/// Models give no ids to calls in text, so the caller assigns them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextCall {
    /// The tool's own name, however the model spelled it.
    pub name: Arc<str>,
    /// The arguments: the text of a JSON object.
    pub arguments: String,
    /// Byte range of the call in the answer, its markers included.
    pub span: Range<usize>,
}

/// A text that was meant to be a call and cannot be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MalformedCall {
    /// Byte range in the answer.
    pub span: Range<usize>,
    /// The reason why it is no call.
    pub kind: MalformedKind,
    /// The tool's name as the model wrote it, truncated to 64 characters; `None` if it wrote none.
    pub name: Option<String>,
}

/// The reason why a text is no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MalformedKind {
    /// The JSON cannot be parsed, and cannot be repaired in exactly one way; or the text of the call,
    /// in whatever form, ends before its arguments do.
    BrokenJson,
    /// No offered tool has this name.
    UnknownTool,
    /// The arguments are JSON, but no object.
    ArgumentsNotObject,
    /// The arguments, written as Python, are positional or are no literals.
    ArgumentsNotNamed,
    /// The call names no tool.
    NoName,
    /// The text is a tool result without any call before it. Only the host may write results.
    ResultWritten,
}
