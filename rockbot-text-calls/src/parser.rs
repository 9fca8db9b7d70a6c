//! The parser of complete answers.

use std::ops::Range;
use std::sync::Arc;

use crate::answer::{MalformedCall, MalformedKind, TextAnswer, TextCall};
use crate::correction::correction;
use crate::hold_back::HoldBack;
use crate::scan::{self, ScanResult};
use crate::tools::{OfferedTool, Tools};
use crate::whole_answer;

/// A parser for the calls of a fixed set of tools.
///
/// Tool names match exactly, or in any case of letters if that leaves one tool. Models also
/// change names: a name after a namespace (`functions.get_weather`), with other separators
/// (`get-weather`) or in camel case matches if that leaves one tool. Cloning is cheap: clones
/// share the tools. Without tools (the default) every call is a call of an unknown tool.
#[derive(Debug, Clone, Default)]
pub struct TextCallParser {
    tools: Arc<Tools>,
}

impl TextCallParser {
    /// Creates a parser for tools with these names and unknown schemas.
    ///
    /// Several forms write arguments without types. Such an argument becomes a number, a boolean, a
    /// list or an object if its text is such a value in JSON, and a string otherwise. With schemas
    /// ([`TextCallParser::for_tools`]) a string that looks like a number stays a string.
    pub fn new<N: Into<Arc<str>>>(names: impl IntoIterator<Item = N>) -> Self {
        let tools = Tools::new(names.into_iter().map(|name| (name.into(), None)));
        Self { tools: Arc::new(tools) }
    }

    /// Creates a parser for the tools that a model was offered, with their schemas.
    ///
    /// Of each schema only the type of the top-level properties is used; nothing is validated.
    pub fn for_tools<'a>(tools: impl IntoIterator<Item = OfferedTool<'a>>) -> Self {
        let tools = tools.into_iter();
        let tools = Tools::new(tools.map(|tool| (tool.name.into(), Some(tool.parameters))));
        Self { tools: Arc::new(tools) }
    }

    /// Takes a complete answer apart into text, calls and malformed calls.
    ///
    /// `text` must be the model's own text of a finished answer; see the [crate
    /// documentation](crate#untrusted-input). The time is linear in the length of the text.
    pub fn parse(&self, text: &str) -> TextAnswer {
        let found = self.find(text);
        let hallucinated_from = found.hallucinated_from;
        let until = hallucinated_from.unwrap_or(text.len());
        let mut answer = TextAnswer {
            text: found.visible_text(text, until),
            hallucinated_from,
            ..TextAnswer::default()
        };
        collect(&mut answer, found, until..text.len());
        answer.correction = correction(&answer.malformed, &self.tools);
        answer
    }

    fn find(&self, text: &str) -> ScanResult {
        if let Some(found) = whole_answer::parse(text, &self.tools) {
            return found;
        }
        let found = scan::scan(text, &self.tools);
        // Plain JSON counts only as the whole answer, and a hallucinated result after it does not change
        // that: the text before the result is tried as a whole answer, too.
        let before = found
            .hallucinated_from
            .filter(|_| found.sites.is_empty())
            .map(|at| &text[..at]);
        match before.and_then(|before| whole_answer::parse(before, &self.tools)) {
            Some(whole) => ScanResult {
                hallucinated_from: found.hallucinated_from,
                ..whole
            },
            None => found,
        }
    }

    /// Creates a filter for one answer that is streamed; see [`HoldBack`].
    pub fn hold_back(&self) -> HoldBack {
        HoldBack::new(self.tools.clone())
    }
}

/// Adds the calls and the malformed calls of `found` to `answer`. `dropped` is the text that was
/// hallucinated.
fn collect(answer: &mut TextAnswer, found: ScanResult, dropped: Range<usize>) {
    if found.hallucinated_from.is_some() && found.sites.is_empty() {
        answer.malformed.push(MalformedCall {
            span: dropped,
            kind: MalformedKind::ResultWritten,
            name: None,
        });
    }
    for site in found.sites {
        let span = site.span;
        match site.call {
            Ok(call) => answer.calls.push(TextCall {
                name: call.name,
                arguments: call.arguments,
                span,
            }),
            Err(flaw) => answer.malformed.push(MalformedCall {
                span,
                kind: flaw.kind,
                name: flaw.name,
            }),
        }
    }
}
