//! Reads the answer to one request, whole or streamed, whatever its dialect.

mod stream;

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Response, Url};
use rockbot_core::chat::{ChatDelta, ChatError, ChatResponse, DeltaSink};
use tokio::time::timeout;

use crate::http::connection::{Connection, has_type, next_chunk};
use crate::http::{Fault, IdleTimer, Outgoing};

pub(crate) use stream::StreamFold;

/// A reader of one answer in one dialect. A whole answer is read at once, a streamed one event by event.
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

/// Time for which the rest of a finished stream is awaited, so that its connection can be used again.
const DRAIN_TIME: Duration = Duration::from_millis(100);

impl Connection {
    /// Posts `outgoing` to `url`, and reads the response with `answer`. A server that does not stream although it was
    /// asked to is understood.
    pub(crate) async fn exchange<R: AnswerReader>(
        &self,
        url: &Url,
        outgoing: impl Into<Outgoing>,
        is_streamed: bool,
        answer: R,
    ) -> Result<ChatResponse, ChatError> {
        let response = self.post(url, outgoing).await?;
        let read = match is_streamed {
            _ if has_type(&response, b"text/html") => Err(Fault::WebPage),
            true if !has_type(&response, b"application/json") => self.read_stream(response, answer).await,
            _ => self.read_whole(response, answer).await,
        };
        read.map_err(|fault| self.unusable(&fault))
    }

    async fn read_whole<R: AnswerReader>(&self, mut response: Response, answer: R) -> Result<ChatResponse, Fault> {
        let body = self.collect(Bytes::new(), &mut response).await?;
        answer.whole(&body)
    }

    async fn read_stream<R: AnswerReader>(&self, mut response: Response, answer: R) -> Result<ChatResponse, Fault> {
        let Some(first) = next_chunk(&mut response).await? else {
            return Err(Fault::Cut("before it began"));
        };
        let mut size = first.len();
        self.check_size(size)?;
        if first.trim_ascii_start().starts_with(b"{") {
            // The server does not stream; it sent the answer whole.
            let body = self.collect(first, &mut response).await?;
            return answer.whole(&body);
        }
        let mut fold = StreamFold::new(answer, self.limits.event);
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
