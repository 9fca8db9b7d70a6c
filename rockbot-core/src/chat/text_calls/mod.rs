//! Tool calls in plain text, for models without native ones.
//!
//! A model that was never trained on a server's own form of calls, or whose server does not read it, writes
//! calls into its answer. [`TextCalls`] finds them there, in the forms that open models really use, and leaves
//! alone what only *talks* about calls. [`instructions`] teaches the one form that every model can write.
//!
//! ```
//! use rockbot_core::chat::text_calls::TextCalls;
//!
//! let calls = TextCalls::new(["get_weather"]);
//! let answer = calls.parse("Let me look.\n\ntool_call_name: get_weather\ntool_call_arguments: {\"city\": \"Paris\"}");
//! assert_eq!(answer.text, "Let me look.");
//! assert_eq!(answer.calls[0].name.as_str(), "get_weather");
//! assert_eq!(answer.calls[0].arguments, r#"{"city":"Paris"}"#);
//!
//! let answer = calls.parse("Write `tool_call_name: get_weather` to call it.");
//! assert!(answer.calls.is_empty());
//! ```
//!
//! # What is a call
//!
//! Its form must be known (the table is in `dialect/mod.rs`), its tool must be, and its place must be one where
//! calls are made. The place decides, never the words around:
//!
//! * A form with a marker of its own counts at the start of a line, filling its lines, outside of fences,
//!   thoughts, quotations, lists and inline code. It counts in the middle of a line only behind the end of a
//!   sentence, or glued to a word when the marker is a token that nobody types, and when it ends the answer.
//! * It is quoted, and no call, when the line before introduces it (a colon, an open quote, a heading, a list
//!   item) *and* prose follows. An answer that quoted calls once needs no prose behind the later ones.
//! * A form without a marker (a known name above a JSON object, a Python list of calls) must end the answer and
//!   not be introduced. Plain JSON, a bare name, and anything in a fence must be the whole answer. Fences that
//!   say `tool_code` or `tool_call`, and fenced JSON behind `Action:`, are markers.
//! * A call that cannot be read is malformed only if no prose follows it; otherwise it is prose, too.
//!
//! An explanation that shows a call on lines of its own, outside of a fence, as its very last words cannot be
//! told from a call. It counts as one, as it does for every server that reads its model's own form.
//!
//! # What is dropped
//!
//! From the first result that the model wrote itself on, nothing counts: it imagined the rest.
//!
//! Give only the assistant's own text of this turn to [`TextCalls::parse`], never tool results or what a person
//! said, and only of an answer that finished: the end of a text that was cut looks like a forgotten bracket.
//!
//! Reading takes time linear in the text, whatever is in it: a text that makes the reader look at its bytes too
//! often is not searched any further.

mod answer;
mod call_object;
mod client;
mod cursor;
mod dialect;
mod fence;
mod hold_back;
mod json;
mod place;
mod prompt;
mod results;
mod scan;
mod teaching;
#[cfg(test)]
mod tests;
mod tools;
mod whole;

use std::ops::Range;
use std::sync::Arc;

use crate::ToolName;
use crate::tool::ToolView;

pub use answer::{Malformed, MalformedKind, TextAnswer, TextCall};
pub use client::TextCallingClient;
pub use hold_back::HoldBack;
pub use prompt::{instructions, result_message};

use scan::Found;
use tools::Tools;

/// Finds the calls of known tools in the text of answers. Cheap to clone.
///
/// Names match in any case of letters, if that leaves one tool, and behind `functions.`, `default_api.` and
/// `tools.`.
#[derive(Debug, Clone, Default)]
pub struct TextCalls {
    tools: Arc<Tools>,
}

impl TextCalls {
    /// For tools with these names and unknown schemas: an argument that a form writes without its type is what
    /// its text looks like.
    pub fn new<N: Into<ToolName>>(names: impl IntoIterator<Item = N>) -> Self {
        let tools = Tools::new(names.into_iter().map(|name| (name.into(), None)));
        Self { tools: Arc::new(tools) }
    }

    /// For the tools that a model was shown. Their schemas say which arguments are texts.
    pub fn of(view: &ToolView) -> Self {
        let tools = Arc::new(Tools::of(view));
        Self { tools }
    }

    /// Takes an answer apart.
    pub fn parse(&self, text: &str) -> TextAnswer {
        let found = self.find(text);
        let imagined = found.imagined;
        let until = imagined.unwrap_or(text.len());
        let mut answer = TextAnswer {
            text: visible(text, &found.hidden, until),
            imagined,
            ..TextAnswer::default()
        };
        answer.collect(found, until..text.len());
        answer.teaching = teaching::teaching(&answer.malformed, &self.tools);
        answer
    }

    fn find(&self, text: &str) -> Found {
        if let Some(found) = whole::read(text, &self.tools) {
            return found;
        }
        let found = scan::scan(text, &self.tools);
        // What was all of the answer before the model imagined more.
        let before = found
            .imagined
            .filter(|_| found.entries.is_empty())
            .map(|at| &text[..at]);
        match before.and_then(|before| whole::read(before, &self.tools)) {
            Some(whole) => Found {
                imagined: found.imagined,
                ..whole
            },
            None => found,
        }
    }

    /// What an answer that is still being written may show already.
    pub fn hold_back(&self) -> HoldBack {
        HoldBack::new(self.tools.clone())
    }
}

impl TextAnswer {
    fn collect(&mut self, found: Found, dropped: Range<usize>) {
        if found.imagined.is_some() && found.entries.is_empty() {
            self.malformed.push(Malformed {
                span: dropped,
                kind: MalformedKind::ResultWritten,
                name: None,
            });
        }
        for entry in found.entries {
            let span = entry.span;
            match entry.call {
                Ok(call) => self.calls.push(TextCall {
                    name: call.name,
                    arguments: call.arguments,
                    span,
                }),
                Err(flaw) => self.malformed.push(Malformed {
                    span,
                    kind: flaw.kind,
                    name: flaw.name,
                }),
            }
        }
    }
}

/// The text up to `until` without what is hidden; as it is when nothing is.
fn visible(text: &str, hidden: &[Range<usize>], until: usize) -> String {
    if hidden.is_empty() && until == text.len() {
        return text.into();
    }
    let starts = std::iter::once(0).chain(hidden.iter().map(|span| span.end));
    let ends = hidden.iter().map(|span| span.start).chain(std::iter::once(until));
    let pieces = starts.zip(ends).filter_map(|(start, end)| text.get(start..end));
    let paragraphs: Vec<_> = pieces.map(str::trim).filter(|piece| !piece.is_empty()).collect();
    paragraphs.join("\n\n")
}
