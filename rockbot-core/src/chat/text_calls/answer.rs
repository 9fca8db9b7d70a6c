//! What an answer turns out to be: words for a person, and calls.

use std::ops::Range;

use super::super::ToolCall;
use crate::{CallId, ToolName};

/// An answer, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TextAnswer {
    /// What a person may read: the answer as it is when nothing was found in it, else what stands before and
    /// around the calls, paragraph by paragraph, without the results that the model imagined.
    pub text: String,
    /// The calls, in their order. Their tools are known and their arguments are JSON objects.
    pub calls: Vec<TextCall>,
    /// What was meant to be a call and cannot be one, in order.
    pub malformed: Vec<Malformed>,
    /// One text for the model about all that is malformed; `None` when nothing is.
    pub teaching: Option<String>,
    /// Where the model began to write results itself. Everything from there on is dropped, calls included.
    pub imagined: Option<usize>,
}

/// A call that a model wrote into its text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextCall {
    /// The tool, by its own name, however the model spelled it.
    pub name: ToolName,
    /// The arguments: the text of a JSON object.
    pub arguments: String,
    /// Where the call stands in the answer, in bytes.
    pub span: Range<usize>,
}

impl TextCall {
    /// The call as a native one would be. Models give no ids in text, so the host does.
    pub fn into_call(self, id: CallId) -> ToolCall {
        ToolCall {
            id,
            name: self.name,
            arguments: self.arguments.into(),
        }
    }
}

/// Something that was meant to be a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Malformed {
    /// Where it stands in the answer, in bytes.
    pub span: Range<usize>,
    /// Why it is none.
    pub kind: MalformedKind,
    /// The tool's name as the model wrote it, at most 64 characters of it, if it wrote one.
    pub name: Option<String>,
}

/// Why something is no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MalformedKind {
    /// Its JSON cannot be read, nor be repaired in just one way.
    BrokenJson,
    /// There is no such tool.
    UnknownTool,
    /// Its arguments are JSON, but no object.
    ArgumentsNotObject,
    /// Its arguments, written as Python, have no names or are no plain values.
    ArgumentsNotNamed,
    /// It names no tool.
    NoName,
    /// It is a result, which only a host may write, without any call before it.
    ResultWritten,
}
