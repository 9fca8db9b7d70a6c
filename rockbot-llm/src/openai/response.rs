//! Assembles an answer: a whole answer is a stream of one piece.

use std::sync::Arc;

use rockbot_core::IdSource;
use rockbot_core::chat::{ChatDelta, ChatMessage, ChatResponse, ContentPart, FinishReason, MicroUsd, Reasoning, Usage};

use super::details::DetailAssembler;
use super::think::{Piece, ThinkSplitter};
use super::usage::read_usage;
use super::wire::{WireAnswer, WireCall, WireChoice, WireMessage};
use crate::http::{
    AnswerReader, CallAssembler, CallPiece, Fault, NoteEcho, Outlet, WireText, image_of, is_error, is_note, parse_wire,
    quoted,
};

/// Collects the pieces of one answer.
pub(super) struct Assembler<'a> {
    answer: AnswerText<'a>,
    splitter: ThinkSplitter,
    details: DetailAssembler,
    calls: CallAssembler<'a>,
    media: Vec<ContentPart>,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    cost: Option<MicroUsd>,
    model: Option<Arc<str>>,
    id: Option<Arc<str>>,
}

/// The text so far, and the sink that gets its pieces.
struct AnswerText<'a> {
    messages: &'a [Arc<ChatMessage>],
    outlet: &'a Outlet,
    text: String,
    reasoning: String,
    echo: NoteEcho,
}

impl AnswerText<'_> {
    fn push(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Answer(text) => {
                let messages = self.messages;
                let is_own = |note: &str| {
                    let mut notes = messages.iter().filter(|message| is_note(message));
                    notes.any(|message| message.text().contains(note))
                };
                self.echo.push(text, is_own, &mut |text| {
                    self.text.push_str(text);
                    self.outlet.send(ChatDelta::Text(text));
                });
            }
            Piece::Reasoning(text) => {
                self.reasoning.push_str(text);
                self.outlet.send(ChatDelta::Reasoning(text));
            }
        }
    }

    fn finish(&mut self) {
        self.echo.finish(&mut |text| {
            self.text.push_str(text);
            self.outlet.send(ChatDelta::Text(text));
        });
    }
}

impl<'a> Assembler<'a> {
    /// Creates the assembler of an answer to `messages`. A call without a usable id gets an id from
    /// `ids`.
    pub(super) fn new(messages: &'a [Arc<ChatMessage>], ids: &'a dyn IdSource, outlet: &'a Outlet) -> Self {
        Self {
            answer: AnswerText {
                messages,
                outlet,
                text: String::new(),
                reasoning: String::new(),
                echo: NoteEcho::default(),
            },
            splitter: ThinkSplitter::default(),
            details: DetailAssembler::default(),
            calls: CallAssembler::new(ids, messages),
            media: Vec::new(),
            finish: None,
            usage: None,
            cost: None,
            model: None,
            id: None,
        }
    }

    /// Reads the members around the message. Returns the single requested choice, if it is in this
    /// piece.
    fn start<'w>(&mut self, answer: WireAnswer<'w>, body: &[u8]) -> Result<Option<WireChoice<'w>>, Fault> {
        if answer.error.is_some_and(is_error) {
            return Err(Fault::InBand(body.to_vec()));
        }
        if let (None, Some(model)) = (&self.model, &answer.model) {
            self.model = Some(Arc::from(&*model.0));
        }
        if let (None, Some(id)) = (&self.id, answer.id.as_ref().filter(|id| !id.0.is_empty())) {
            self.id = Some(Arc::from(&*id.0));
        }
        if let Some((usage, cost)) = answer.usage.and_then(read_usage) {
            self.usage = usage.or(self.usage);
            self.cost = cost.or(self.cost);
        }
        let choice = answer.choice;
        if let Some(reason) = choice.as_ref().and_then(|choice| choice.finish_reason.as_ref()) {
            match &*reason.0 {
                "" => {}
                "error" => return Err(Fault::InBand(body.to_vec())),
                reason => self.finish = Some(finish_reason(reason)),
            }
        }
        Ok(choice)
    }

    /// Reads the words of a message: thoughts, text, and a refusal, which is the text of who refuses.
    fn words(&mut self, message: &WireMessage<'_>) {
        let thought = [&message.reasoning_content, &message.reasoning]
            .into_iter()
            .find_map(non_empty);
        if let Some(thought) = thought {
            self.answer.push(Piece::Reasoning(thought));
        }
        if let Some(details) = message.reasoning_details {
            self.details.push(details);
        }
        for text in [&message.content, &message.refusal].into_iter().filter_map(non_empty) {
            self.splitter.push(text, &mut |piece| self.answer.push(piece));
        }
        for image in message.images.iter().flatten() {
            let url = image.image_url.as_ref().and_then(|image| non_empty(&image.url));
            self.media.extend(url.and_then(image_of));
        }
    }
}

impl AnswerReader for Assembler<'_> {
    fn whole(mut self, body: &[u8]) -> Result<ChatResponse, Fault> {
        let answer = parse(body)?;
        let Some(choice) = self.start(answer, body)? else {
            return Err(Fault::Malformed(format!("it has no choices{}", quoted(body))));
        };
        let message = choice.message.or(choice.delta).unwrap_or_default();
        self.words(&message);
        for call in message.tool_calls.iter().flatten() {
            with_piece(call, |piece| self.calls.push_whole(piece))?;
        }
        // It has come whole, also where the server gives no reason.
        self.finish.get_or_insert_default();
        self.finish()
    }

    fn event(&mut self, event: &[u8]) -> Result<bool, Fault> {
        if event == b"[DONE]" {
            return Ok(true);
        }
        let answer = parse(event)?;
        let Some(choice) = self.start(answer, event)? else {
            return Ok(false);
        };
        let message = choice.delta.or(choice.message).unwrap_or_default();
        self.words(&message);
        for call in message.tool_calls.iter().flatten() {
            let outlet = self.answer.outlet;
            with_piece(call, |piece| {
                self.calls
                    .push(piece, |call, tool| outlet.send(ChatDelta::ToolCall { call, tool }))
            })?;
        }
        Ok(false)
    }

    fn has_finished(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(mut self) -> Result<ChatResponse, Fault> {
        self.splitter.finish(&mut |piece| self.answer.push(piece));
        self.answer.finish();
        let finish = self.finish.unwrap_or(FinishReason::Other);
        let tool_calls = self.calls.finish(finish)?;
        if finish == FinishReason::ContentFilter && self.answer.text.is_empty() {
            return Err(Fault::Filtered);
        }
        let mut answer = ChatResponse::default()
            .with_finish(match (finish, tool_calls.is_empty()) {
                (FinishReason::ToolCalls, true) => FinishReason::Other,
                (_, false) => FinishReason::ToolCalls,
                (finish, true) => finish,
            })
            .with_text(self.answer.text)
            .with_media(self.media)
            .with_tool_calls(tool_calls)
            .with_reasoning(reasoning(self.answer.reasoning, self.details))
            .with_usage(self.usage)
            .with_cost(self.cost);
        (answer.model, answer.id) = (self.model, self.id);
        Ok(answer)
    }
}

fn parse(json: &[u8]) -> Result<WireAnswer<'_>, Fault> {
    parse_wire(json).map_err(|error| {
        let sent = quoted(json);
        Fault::Malformed(format!("it is not a chat completion ({error}){sent}"))
    })
}

fn non_empty<'a>(text: &'a Option<WireText<'_>>) -> Option<&'a str> {
    text.as_ref().map(|text| &*text.0).filter(|text| !text.is_empty())
}

fn with_piece(call: &WireCall<'_>, push: impl FnOnce(CallPiece<'_>) -> Result<(), Fault>) -> Result<(), Fault> {
    let function = call.function.as_ref();
    let arguments = function.map(|function| function.arguments()).transpose();
    let arguments = arguments.map_err(|error| Fault::Malformed(format!("a tool call cannot be read: {error}")))?;
    push(CallPiece {
        index: call.index,
        id: non_empty(&call.id).unwrap_or_default(),
        name: function
            .and_then(|function| non_empty(&function.name))
            .unwrap_or_default(),
        arguments: arguments.as_deref().unwrap_or_default(),
    })
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        // Besides OpenAI's words, words of servers that resemble it.
        "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" => FinishReason::Stop,
        "tool_calls" | "function_call" | "tool_use" => FinishReason::ToolCalls,
        "length" | "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}

fn reasoning(text: String, details: DetailAssembler) -> Option<Reasoning> {
    let details = details.finish();
    (!text.is_empty() || details.is_some()).then_some(Reasoning::new(text).with_details(details))
}
