//! Assembles an answer from its items, whole ones or pieces of them.

use std::sync::Arc;

use rockbot_core::IdSource;
use rockbot_core::chat::{ChatDelta, ChatMessage, ChatResponse, FinishReason, MicroUsd, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::kept::KeptItems;
use super::wire::{WireEvent, WireHead, WireItem, WirePart, WireResponse, text};
use crate::http::{AnswerReader, CallAssembler, CallPiece, Fault, Outlet, is_error, parse_wire, quoted};
use crate::openai::read_usage;

/// More items than this in one answer are not meant.
const MAX_ITEMS: usize = 4096;

/// The text between two messages, or two parts of a summary.
const BETWEEN: &str = "\n\n";

/// Collects the pieces of one answer.
pub(super) struct Assembler<'a> {
    outlet: &'a Outlet,
    text: Passage,
    thoughts: Passage,
    kept: KeptItems,
    calls: CallAssembler<'a>,
    /// Items of a stream that have begun, by the index that the server gave them.
    begun: Vec<BegunItem>,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    cost: Option<MicroUsd>,
    model: Option<Arc<str>>,
    id: Option<Arc<str>>,
}

/// A text that arrives in paragraphs.
#[derive(Default)]
struct Passage {
    text: String,
    /// `true` if the next piece begins a paragraph.
    is_between: bool,
}

impl Passage {
    fn end_paragraph(&mut self) {
        self.is_between = !self.text.is_empty();
    }

    /// Appends `piece`, and sends the added text.
    fn push(&mut self, piece: &str, send: impl Fn(&str)) {
        if piece.is_empty() {
            return;
        }
        for new in [BETWEEN, piece].into_iter().skip(usize::from(!self.is_between)) {
            self.text.push_str(new);
            send(new);
        }
        self.is_between = false;
    }
}

/// An item of a stream.
struct BegunItem {
    index: u64,
    /// `true` if pieces of it came, so that its end repeats them.
    has_pieces: bool,
}

impl<'a> Assembler<'a> {
    /// Creates the assembler of an answer to `messages`. A call without a usable id gets an id from
    /// `ids`.
    pub(super) fn new(messages: &'a [Arc<ChatMessage>], ids: &'a dyn IdSource, outlet: &'a Outlet) -> Self {
        Self {
            outlet,
            text: Passage::default(),
            thoughts: Passage::default(),
            kept: KeptItems::default(),
            calls: CallAssembler::new(ids, messages),
            begun: Vec::new(),
            finish: None,
            usage: None,
            cost: None,
            model: None,
            id: None,
        }
    }

    /// Reads the members around the items.
    fn surroundings(&mut self, response: &WireResponse<'_>) -> Result<(), Fault> {
        if let Some(error) = response.error.filter(|error| is_error(error)) {
            return Err(Fault::InBand(format!("{{\"error\":{}}}", error.get()).into_bytes()));
        }
        let shared = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
        self.model = shared(text(response.model.as_ref())).or_else(|| self.model.take());
        self.id = shared(text(response.id.as_ref())).or_else(|| self.id.take());
        if let Some((usage, cost)) = response.usage.and_then(read_usage) {
            (self.usage, self.cost) = (usage, cost);
        }
        Ok(())
    }

    /// Reads the end of an answer: of a whole one, or of a stream.
    fn end(&mut self, response: &WireResponse<'_>, status: &str) -> Result<(), Fault> {
        self.surroundings(response)?;
        if matches!(status, "failed" | "cancelled") {
            return Err(Fault::InBand(format!("the response is {status}").into_bytes()));
        }
        // Servers that resemble the API stream no items, or only some kinds of them.
        if self.begun.is_empty() && self.text.text.is_empty() {
            for item in response.output.iter().flatten() {
                self.end_item(None, item)?;
            }
        }
        let details = response.incomplete_details.as_ref();
        let reason = text(details.and_then(|details| details.reason.as_ref()));
        self.finish = Some(finish_reason(status, reason));
        Ok(())
    }

    fn begin_item(&mut self, index: u64, raw: &RawValue) -> Result<(), Fault> {
        if self.begun.len() == MAX_ITEMS {
            return Err(Fault::Malformed(format!("it has more than {MAX_ITEMS} items")));
        }
        let item = asked_item(raw)?;
        let arguments = text(item.as_ref().and_then(|item| item.arguments.as_ref()));
        self.begun.push(BegunItem {
            index,
            has_pieces: !arguments.is_empty(),
        });
        let Some(item) = &item else { return Ok(()) };
        match &*item.kind.0 {
            "message" => self.text.end_paragraph(),
            "reasoning" => self.thoughts.end_paragraph(),
            "function_call" => self.push_call(piece(Some(index), item, arguments))?,
            _ => {}
        }
        Ok(())
    }

    /// Reads a whole item: an item of a whole answer, or the end of the item with `index` of a
    /// stream, which repeats its pieces.
    fn end_item(&mut self, index: Option<u64>, raw: &RawValue) -> Result<(), Fault> {
        let had_pieces = match index {
            Some(index) => self.has_pieces(index, raw)?,
            None => false,
        };
        let Some(item) = asked_item(raw)? else { return Ok(()) };
        match &*item.kind.0 {
            "message" => self.whole_message(&item, index.is_none(), had_pieces),
            "reasoning" => {
                self.kept.push_reasoning(raw);
                if !had_pieces {
                    self.whole_thoughts(&item);
                }
            }
            "function_call" => {
                self.kept.push_call(text(item.id.as_ref()));
                let arguments = text(item.arguments.as_ref());
                match index {
                    None => self.calls.push_whole(piece(None, &item, arguments))?,
                    Some(_) if had_pieces => {}
                    Some(_) => self.push_call(CallPiece {
                        index,
                        arguments,
                        ..CallPiece::default()
                    })?,
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads the end of a message: its words, unless they came as pieces.
    fn whole_message(&mut self, item: &WireItem<'_>, is_new: bool, had_pieces: bool) {
        if is_new {
            self.text.end_paragraph();
        }
        let parts = item.content.as_deref().unwrap_or_default();
        if parts.iter().any(|part| !part.words().is_empty()) {
            self.kept.push_message(text(item.id.as_ref()));
        }
        for part in parts.iter().filter(|_| !had_pieces) {
            self.push_text(part.words());
        }
    }

    /// Returns `true` if pieces of the item with `index` came. An item that ends without a beginning
    /// begins here.
    fn has_pieces(&mut self, index: u64, raw: &RawValue) -> Result<bool, Fault> {
        let begun = |begun: &BegunItem| begun.index == index;
        if !self.begun.iter().any(begun) {
            self.begin_item(index, raw)?;
        }
        Ok(self
            .begun
            .iter()
            .rev()
            .find(|item| begun(item))
            .is_some_and(|item| item.has_pieces))
    }

    /// Reads the thoughts of a whole item: its summary, or else the plain thoughts that servers of
    /// open models send.
    fn whole_thoughts(&mut self, item: &WireItem<'_>) {
        let full = |parts: &&[WirePart<'_>]| !parts.is_empty();
        let summary = item.summary.as_deref().filter(full);
        for part in summary.or(item.content.as_deref()).unwrap_or_default() {
            self.thoughts.end_paragraph();
            self.push_thought(part.words());
        }
    }

    /// Reads more of the item with `index`. A piece of an unknown kind is skipped.
    fn continue_item(&mut self, index: u64, kind: &str, delta: &str) -> Result<(), Fault> {
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => self.push_text(delta),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => self.push_thought(delta),
            "response.function_call_arguments.delta" => self.push_call(CallPiece {
                index: Some(index),
                arguments: delta,
                ..CallPiece::default()
            })?,
            _ => return Ok(()),
        }
        let item = self.begun.iter_mut().rev().find(|item| item.index == index);
        if let Some(item) = item {
            item.has_pieces |= !delta.is_empty();
        }
        Ok(())
    }

    fn push_text(&mut self, piece: &str) {
        let outlet = self.outlet;
        self.text.push(piece, |new| outlet.send(ChatDelta::Text(new)));
    }

    fn push_thought(&mut self, piece: &str) {
        let outlet = self.outlet;
        self.thoughts.push(piece, |new| outlet.send(ChatDelta::Reasoning(new)));
    }

    fn push_call(&mut self, piece: CallPiece<'_>) -> Result<(), Fault> {
        let outlet = self.outlet;
        self.calls
            .push(piece, |call, tool| outlet.send(ChatDelta::ToolCall { call, tool }))
    }
}

impl AnswerReader for Assembler<'_> {
    fn whole(mut self, body: &[u8]) -> Result<ChatResponse, Fault> {
        let response: WireResponse<'_> = parse(body)?;
        self.end(&response, text(response.status.as_ref()))?;
        if response.output.is_none() {
            return Err(Fault::Malformed(format!("it has no output{}", quoted(body))));
        }
        self.finish()
    }

    fn event(&mut self, event: &[u8]) -> Result<bool, Fault> {
        // The API ends a stream with its last event; servers that resemble it add the end of the older
        // dialect.
        if event == b"[DONE]" {
            return Ok(false);
        }
        let parsed: WireEvent<'_> = parse(event)?;
        let index = parsed.output_index;
        let kind = &*parsed.kind.0;
        match (kind, parsed.item, &parsed.response) {
            ("response.created", _, Some(response)) => self.surroundings(response)?,
            ("response.output_item.added", Some(item), _) => self.begin_item(index, item)?,
            ("response.output_item.done", Some(item), _) => self.end_item(Some(index), item)?,
            ("response.reasoning_summary_part.added", ..) => self.thoughts.end_paragraph(),
            ("response.completed" | "response.incomplete" | "response.failed", _, Some(response)) => {
                self.end(response, &kind["response.".len()..])?;
                return Ok(true);
            }
            ("error", ..) => return Err(Fault::InBand(event.to_vec())),
            _ => self.continue_item(index, kind, text(parsed.delta.as_ref()))?,
        }
        Ok(false)
    }

    fn has_finished(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(self) -> Result<ChatResponse, Fault> {
        let finish = self.finish.unwrap_or(FinishReason::Other);
        let tool_calls = self.calls.finish(finish)?;
        if finish == FinishReason::ContentFilter && self.text.text.is_empty() {
            return Err(Fault::Filtered);
        }
        let mut answer = ChatResponse::default()
            .with_finish(if tool_calls.is_empty() {
                finish
            } else {
                FinishReason::ToolCalls
            })
            .with_text(self.text.text)
            .with_tool_calls(tool_calls)
            .with_reasoning(self.kept.finish(self.thoughts.text))
            .with_usage(self.usage)
            .with_cost(self.cost);
        (answer.model, answer.id) = (self.model, self.id);
        Ok(answer)
    }
}

fn parse<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, Fault> {
    parse_wire(json).map_err(|error| {
        let sent = quoted(json);
        Fault::Malformed(format!("it is not a response ({error}){sent}"))
    })
}

/// Returns an item, unless it is of a type that this client did not ask for, such as a search of
/// the server's own.
fn asked_item(raw: &RawValue) -> Result<Option<WireItem<'_>>, Fault> {
    let head: WireHead<'_> = parse(raw.get().as_bytes())?;
    let is_asked = matches!(&*head.kind.0, "message" | "reasoning" | "function_call");
    is_asked.then(|| parse(raw.get().as_bytes())).transpose()
}

fn piece<'i>(index: Option<u64>, item: &'i WireItem<'_>, arguments: &'i str) -> CallPiece<'i> {
    CallPiece {
        index,
        id: text(item.call_id.as_ref()),
        name: text(item.name.as_ref()),
        arguments,
    }
}

fn finish_reason(status: &str, reason: &str) -> FinishReason {
    match (status, reason) {
        (_, "max_output_tokens" | "max_tokens" | "length") => FinishReason::Length,
        (_, "content_filter") => FinishReason::ContentFilter,
        ("completed" | "", _) => FinishReason::Stop,
        _ => FinishReason::Other,
    }
}
