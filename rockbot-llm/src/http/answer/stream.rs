//! A streamed answer, folded from the bytes as they arrive.

use rockbot_core::chat::ChatResponse;

use super::AnswerReader;
use crate::http::{EventTooLong, Fault, SseDecoder};

/// Bytes in, an answer out.
pub(crate) struct StreamFold<R> {
    decoder: SseDecoder,
    answer: R,
    event_limit: usize,
    is_done: bool,
}

impl<R: AnswerReader> StreamFold<R> {
    /// Folds into `answer`; an event longer than `event_limit` bytes is an error.
    pub(crate) fn new(answer: R, event_limit: usize) -> Self {
        Self {
            decoder: SseDecoder::new(event_limit),
            answer,
            event_limit,
            is_done: false,
        }
    }

    /// Takes in the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.decoder.feed(bytes);
        self.read_events()
    }

    /// Returns `true` if the server sent the end of the stream.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns the answer, once there are no more bytes.
    pub(crate) fn finish(mut self) -> Result<ChatResponse, Fault> {
        if !self.is_done {
            self.decoder.finish();
            self.read_events().map_err(|fault| match fault {
                Fault::Malformed(_) => Fault::Cut("in the middle of an event"),
                fault => fault,
            })?;
        }
        if !self.is_done && !self.answer.has_finished() {
            return Err(Fault::Cut("before its end"));
        }
        self.answer.finish()
    }

    fn read_events(&mut self) -> Result<(), Fault> {
        let too_long = |EventTooLong| Fault::TooLong("a stream event", self.event_limit);
        while let Some(event) = self.decoder.next_event().map_err(too_long)? {
            match event.trim_ascii() {
                _ if self.is_done => {}
                b"" => {}
                event => self.is_done = self.answer.event(event)?,
            }
        }
        Ok(())
    }
}
