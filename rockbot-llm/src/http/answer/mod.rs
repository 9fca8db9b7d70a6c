//! Reads the answer to one request, whole or streamed, whatever its dialect.

mod stream;

use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use rockbot_core::chat::{ChatDelta, ChatError, ChatResponse, DeltaSink};
use tokio::time::timeout;

use crate::http::connection::{Connection, has_type, next_chunk};
use crate::http::{Fault, IdleTimer};

pub(crate) use stream::StreamFold;

/// A reader of one answer in one dialect. A whole answer is read at once, a streamed one event by
/// event.
pub(crate) trait AnswerReader: Sized {
    /// Reads a whole answer.
    fn whole(self, body: &[u8]) -> Result<ChatResponse, Fault>;

    /// Reads the data of one event of a streamed answer, and returns `true` if the stream ends with it.
    fn event(&mut self, event: &[u8]) -> Result<bool, Fault>;

    /// Returns `true` if the server sent a finish reason, as it does at the end of an answer.
    fn has_finished(&self) -> bool;

    /// Returns the answer that the events make together.
    fn finish(self) -> Result<ChatResponse, Fault>;
}

/// The sink of an answer's pieces, if the caller listens.
#[derive(Debug)]
pub(crate) struct Outlet(pub(crate) Option<DeltaSink>);

impl Outlet {
    /// Sends one piece, if the caller listens.
    pub(crate) fn send(&self, delta: ChatDelta<'_>) {
        if let Some(sink) = &self.0 {
            sink.send(delta);
        }
    }
}

/// Time for which the rest of a finished stream is awaited, so that its connection can be used
/// again.
const DRAIN_TIME: Duration = Duration::from_millis(100);

impl Connection {
    /// Waits for the response to the `posted` request, and reads it with the reader that `reader`
    /// creates. A server that does not stream although it was asked to is understood.
    // A reader is large, so it is created where it reads: futures that only waited with it would
    // each have room for it.
    pub(crate) async fn answer_to<R: AnswerReader>(
        &self,
        posted: impl Future<Output = Result<Response, ChatError>>,
        is_streamed: bool,
        reader: impl FnOnce() -> R,
    ) -> Result<ChatResponse, ChatError> {
        let mut response = posted.await?;
        let read = match is_streamed {
            _ if has_type(&response, b"text/html") => Err(Fault::WebPage),
            // Boxed: answers that come whole would have room for it otherwise.
            true if !has_type(&response, b"application/json") => Box::pin(self.read_stream(response, reader)).await,
            _ => match self.collect(Bytes::new(), &mut response).await {
                Ok(body) => reader().whole(&body),
                Err(fault) => Err(fault),
            },
        };
        read.map_err(|fault| self.unusable(&fault))
    }

    async fn read_stream<R: AnswerReader>(
        &self,
        mut response: Response,
        reader: impl FnOnce() -> R,
    ) -> Result<ChatResponse, Fault> {
        let Some(first) = next_chunk(&mut response).await? else {
            return Err(Fault::Cut("before it began"));
        };
        let mut size = first.len();
        self.check_size(size)?;
        if first.trim_ascii_start().starts_with(b"{") {
            // The server does not stream; it sent the answer whole.
            let body = self.collect(first, &mut response).await?;
            return reader().whole(&body);
        }
        let mut fold = StreamFold::new(reader(), self.limits.event);
        fold.push(&first)?;
        let mut idle = IdleTimer::new(self.limits.idle);
        while !fold.is_done() {
            let chunk = idle.watch(next_chunk(&mut response)).await;
            let Some(bytes) = chunk.map_err(|_| Fault::Cut("as nothing more came in time"))?? else {
                break;
            };
            size += bytes.len();
            self.check_size(size)?;
            fold.push(&bytes)?;
        }
        if fold.is_done() {
            let _ = timeout(DRAIN_TIME, next_chunk(&mut response)).await;
        }
        fold.finish()
    }
}
