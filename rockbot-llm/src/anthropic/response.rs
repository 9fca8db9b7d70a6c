//! Assembles an answer from its blocks, whole ones or pieces of them.

use std::sync::Arc;

use rockbot_core::IdSource;
use rockbot_core::chat::{ChatDelta, ChatMessage, ChatResponse, FinishReason};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::shape::ShapeTool;
use super::thinking::ThoughtAssembler;
use super::usage::TokenCounts;
use super::wire::{WireAnswer, WireBlock, WireDelta, WireEvent, text};
use crate::http::{AnswerReader, CallAssembler, CallPiece, Fault, Outlet, parse_wire, quoted};

/// More blocks than this in one answer are not meant.
const MAX_BLOCKS: usize = 4096;

/// Collects the pieces of one answer.
pub(super) struct Assembler<'a> {
    outlet: &'a Outlet,
    /// The tool that stands for the shape of the answer, if the request has a shape.
    shape: Option<&'a ShapeTool>,
    text: String,
    /// Arguments of the shape's tool, once it is called.
    shaped: Option<String>,
    thoughts: ThoughtAssembler,
    calls: CallAssembler<'a>,
    /// Blocks of a stream, by the index that the server gave them.
    blocks: Vec<(u64, BlockKind)>,
    finish: Option<FinishReason>,
    tokens: TokenCounts,
    model: Option<Arc<str>>,
    id: Option<Arc<str>>,
}

/// The kind of a block, which decides where its pieces belong.
#[derive(Clone, Copy)]
enum BlockKind {
    Text,
    /// A thinking block, with its number among them.
    Thought(usize),
    Call,
    /// A call of the shape's tool.
    Shaped,
    /// A block that this client did not ask for, such as a search of the server's own.
    Other,
}

impl<'a> Assembler<'a> {
    /// Creates the assembler of an answer to `messages`, in the shape of `shape` if there is one. A
    /// call without a usable id gets an id from `ids`.
    pub(super) fn new(
        messages: &'a [Arc<ChatMessage>],
        shape: Option<&'a ShapeTool>,
        ids: &'a dyn IdSource,
        outlet: &'a Outlet,
    ) -> Self {
        Self {
            outlet,
            shape,
            text: String::new(),
            shaped: None,
            thoughts: ThoughtAssembler::default(),
            calls: CallAssembler::new(ids, messages),
            blocks: Vec::new(),
            finish: None,
            tokens: TokenCounts::default(),
            model: None,
            id: None,
        }
    }

    /// Reads the members around the blocks.
    fn start(&mut self, answer: &WireAnswer<'_>) {
        let shared = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
        self.model = shared(text(answer.model.as_ref()));
        self.id = shared(text(answer.id.as_ref()));
        self.stop(text(answer.stop_reason.as_ref()));
        if let Some(usage) = answer.usage {
            self.tokens.add(usage);
        }
    }

    fn stop(&mut self, reason: &str) {
        if !reason.is_empty() {
            self.finish = Some(finish_reason(reason));
        }
    }

    /// Reads a block of a whole answer.
    fn whole_block(&mut self, raw: &RawValue) -> Result<(), Fault> {
        let block: WireBlock<'_> = parse(raw.get().as_bytes())?;
        match &*block.kind.0 {
            "text" => self.push_text(text(block.text.as_ref())),
            "tool_use" if self.is_shape(&block) => self.push_shaped(&block.arguments()),
            "tool_use" => self.calls.push_whole(piece(None, &block, &block.arguments()))?,
            kind if ThoughtAssembler::takes(kind) => {
                let thought = text(block.thinking.as_ref());
                self.thoughts.push_whole(raw, thought);
                self.send(ChatDelta::Reasoning(thought));
            }
            _ => {}
        }
        Ok(())
    }

    /// Begins the block with `index` of a stream.
    fn begin_block(&mut self, index: u64, raw: &RawValue) -> Result<(), Fault> {
        if self.blocks.len() == MAX_BLOCKS {
            return Err(Fault::Malformed(format!("it has more than {MAX_BLOCKS} blocks")));
        }
        let block: WireBlock<'_> = parse(raw.get().as_bytes())?;
        let kind = match &*block.kind.0 {
            "text" => {
                self.push_text(text(block.text.as_ref()));
                BlockKind::Text
            }
            "tool_use" if self.is_shape(&block) => {
                self.push_shaped(&block.arguments());
                BlockKind::Shaped
            }
            "tool_use" => {
                self.push_call(piece(Some(index), &block, &block.arguments()))?;
                BlockKind::Call
            }
            kind if ThoughtAssembler::takes(kind) => {
                let thought = text(block.thinking.as_ref());
                self.send(ChatDelta::Reasoning(thought));
                BlockKind::Thought(self.thoughts.begin(raw, thought))
            }
            _ => BlockKind::Other,
        };
        self.blocks.push((index, kind));
        Ok(())
    }

    /// Reads more of the block with `index`. A piece whose block or kind is unknown is skipped.
    fn continue_block(&mut self, index: u64, delta: &WireDelta<'_>) -> Result<(), Fault> {
        // The last block: servers that resemble this API use an index again.
        let block = self.blocks.iter().rev().find(|(known, _)| *known == index);
        let Some((_, kind)) = block else { return Ok(()) };
        match (text(delta.kind.as_ref()), *kind) {
            ("text_delta", BlockKind::Text) => self.push_text(text(delta.text.as_ref())),
            ("thinking_delta", BlockKind::Thought(at)) => {
                let thought = text(delta.thinking.as_ref());
                self.thoughts.append(at, thought);
                self.send(ChatDelta::Reasoning(thought));
            }
            ("signature_delta", BlockKind::Thought(at)) => self.thoughts.sign(at, text(delta.signature.as_ref())),
            ("input_json_delta", BlockKind::Shaped) => self.push_shaped(text(delta.partial_json.as_ref())),
            ("input_json_delta", BlockKind::Call) => self.push_call(CallPiece {
                index: Some(index),
                arguments: text(delta.partial_json.as_ref()),
                ..CallPiece::default()
            })?,
            _ => {}
        }
        Ok(())
    }

    fn is_shape(&self, block: &WireBlock<'_>) -> bool {
        let name = text(block.name.as_ref());
        self.shape.is_some_and(|shape| shape.name == name)
    }

    fn push_text(&mut self, piece: &str) {
        self.text.push_str(piece);
        self.send(ChatDelta::Text(piece));
    }

    /// Takes in arguments of the shape's tool. They are the answer's text, so text in front of them
    /// is taken back.
    fn push_shaped(&mut self, piece: &str) {
        if self.shaped.is_none() && !self.text.is_empty() {
            self.outlet.send(ChatDelta::Reset);
        }
        self.shaped.get_or_insert_default().push_str(piece);
        if self.shape.is_some_and(ShapeTool::is_streamed) {
            self.send(ChatDelta::Text(piece));
        }
    }

    fn push_call(&mut self, piece: CallPiece<'_>) -> Result<(), Fault> {
        let outlet = self.outlet;
        self.calls
            .push(piece, |call, tool| outlet.send(ChatDelta::ToolCall { call, tool }))
    }

    /// Sends a piece that is not empty.
    fn send(&self, delta: ChatDelta<'_>) {
        if !matches!(delta, ChatDelta::Text("") | ChatDelta::Reasoning("")) {
            self.outlet.send(delta);
        }
    }
}

impl AnswerReader for Assembler<'_> {
    fn whole(mut self, body: &[u8]) -> Result<ChatResponse, Fault> {
        let answer: WireAnswer<'_> = parse(body)?;
        if answer.error.is_some() {
            return Err(Fault::InBand(body.to_vec()));
        }
        self.start(&answer);
        let Some(blocks) = answer.content else {
            return Err(Fault::Malformed(format!("it has no content{}", quoted(body))));
        };
        for block in blocks {
            self.whole_block(block)?;
        }
        // It has come whole, also where the server gives no reason.
        self.finish.get_or_insert_default();
        self.finish()
    }

    fn event(&mut self, event: &[u8]) -> Result<bool, Fault> {
        let parsed: WireEvent<'_> = parse(event)?;
        match &*parsed.kind.0 {
            "message_start" => parsed.message.iter().for_each(|answer| self.start(answer)),
            "content_block_start" => {
                if let Some(block) = parsed.content_block {
                    self.begin_block(parsed.index, block)?;
                }
            }
            "content_block_delta" => {
                if let Some(delta) = &parsed.delta {
                    self.continue_block(parsed.index, delta)?;
                }
            }
            "message_delta" => {
                let delta = parsed.delta.as_ref();
                self.stop(text(delta.and_then(|delta| delta.stop_reason.as_ref())));
                parsed.usage.iter().for_each(|usage| self.tokens.add(usage));
            }
            "message_stop" => return Ok(true),
            "error" => return Err(Fault::InBand(event.to_vec())),
            _ => {}
        }
        Ok(false)
    }

    fn has_finished(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(mut self) -> Result<ChatResponse, Fault> {
        let finish = self.finish.unwrap_or(FinishReason::Other);
        let tool_calls = self.calls.finish(finish)?;
        // Calls of other tools go first: the model will give its answer again, with their results.
        let shaped = self.shaped.filter(|_| tool_calls.is_empty());
        let is_shaped = shaped.is_some();
        if let (Some(shape), Some(arguments)) = (self.shape, shaped) {
            self.text = shape.answer(arguments);
            if !shape.is_streamed() && !self.text.is_empty() {
                self.outlet.send(ChatDelta::Text(&self.text));
            }
        }
        if finish == FinishReason::ContentFilter && self.text.is_empty() {
            return Err(Fault::Filtered);
        }
        let mut answer = ChatResponse::default()
            .with_finish(match (finish, tool_calls.is_empty()) {
                (FinishReason::ToolCalls, true) if is_shaped => FinishReason::Stop,
                (FinishReason::ToolCalls, true) => FinishReason::Other,
                (_, false) => FinishReason::ToolCalls,
                (finish, true) => finish,
            })
            .with_text(self.text)
            .with_tool_calls(tool_calls)
            .with_reasoning(self.thoughts.finish())
            .with_usage(self.tokens.usage());
        (answer.model, answer.id) = (self.model, self.id);
        Ok(answer)
    }
}

fn parse<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, Fault> {
    parse_wire(json).map_err(|error| {
        let sent = quoted(json);
        Fault::Malformed(format!("it is not a message ({error}){sent}"))
    })
}

fn piece<'b>(index: Option<u64>, block: &'b WireBlock<'_>, arguments: &'b str) -> CallPiece<'b> {
    CallPiece {
        index,
        id: text(block.id.as_ref()),
        name: text(block.name.as_ref()),
        arguments,
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}
