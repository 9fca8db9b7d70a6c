//! Server-sent events: the items of a stream about a task.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::MAX_ANSWER;
use super::error::PeerError;
use crate::egress::EgressPieces;

/// Maximum length of a stream, in bytes. After it the task is asked for instead.
const MAX_STREAM: usize = 64 << 20;

/// A stream of events, of which each has JSON.
#[derive(Debug)]
pub(super) struct Events {
    pieces: EgressPieces,
    lines: Lines,
    received: usize,
}

/// The next item of a stream.
#[derive(Debug)]
pub(super) enum Event {
    /// The data of an event.
    Data(String),
    /// No event for as long as was waited.
    Silence,
    /// The end of the stream.
    End,
}

/// The lines that were received and not read yet.
#[derive(Debug, Default)]
struct Lines {
    buffer: Vec<u8>,
    /// Beginning of the part of `buffer` that was not read yet.
    at: usize,
    /// Beginning of the part of `buffer` that may have the end of a line.
    unseen: usize,
    /// Data of the event whose end did not come yet.
    data: String,
}

impl Events {
    pub(super) fn new(pieces: EgressPieces) -> Self {
        Self {
            pieces,
            lines: Lines::default(),
            received: 0,
        }
    }

    /// Waits up to `limit` for the next event. Comments, by which servers keep streams open, are no
    /// events.
    pub(super) async fn next(&mut self, limit: Duration) -> Result<Event, PeerError> {
        let silent_at = Instant::now() + limit;
        loop {
            if let Some(data) = self.lines.next() {
                return Ok(Event::Data(data));
            }
            let Ok(piece) = timeout_at(silent_at, self.pieces.next(2 * limit)).await else {
                return Ok(Event::Silence);
            };
            let Some(piece) = piece? else {
                return Ok(Event::End);
            };
            self.received = self.received.saturating_add(piece.len());
            if self.received > MAX_STREAM || !self.lines.take(&piece) {
                return Err(PeerError::TooLong);
            }
        }
    }
}

impl Lines {
    /// Takes a piece. Returns `false` if the event is too long.
    fn take(&mut self, piece: &[u8]) -> bool {
        self.buffer.drain(..self.at);
        (self.at, self.unseen) = (0, self.buffer.len());
        self.buffer.extend_from_slice(piece);
        self.buffer.len() + self.data.len() <= 2 * MAX_ANSWER
    }

    /// Returns the data of the next event that is complete.
    fn next(&mut self) -> Option<String> {
        loop {
            let end = self.unseen + self.buffer[self.unseen..].iter().position(|byte| *byte == b'\n')?;
            let line = &self.buffer[self.at..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            (self.at, self.unseen) = (end + 1, end + 1);
            if line.is_empty() {
                if !self.data.is_empty() {
                    return Some(std::mem::take(&mut self.data));
                }
            } else if let Some(data) = line.strip_prefix(b"data:") {
                let data = String::from_utf8_lossy(data.strip_prefix(b" ").unwrap_or(data)).into_owned();
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(&data);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&str]) -> Vec<String> {
        let mut lines = Lines::default();
        let mut events = Vec::new();
        for piece in pieces {
            assert!(lines.take(piece.as_bytes()));
            events.extend(std::iter::from_fn(|| lines.next()));
        }
        events
    }

    #[test]
    fn events_are_read_from_pieces_of_any_length() {
        let text = ": hello\n\nevent: x\nid: 1\ndata: {\"a\":\ndata:1}\n\ndata: ü\r\n\r\n\n\ndata: cut";
        let expected = ["{\"a\":\n1}", "ü"];
        assert_eq!(read(&[text]), expected);
        let pieces: Vec<_> = text.split_inclusive(|_| true).collect();
        assert_eq!(read(&pieces), expected);
    }

    #[test]
    fn an_event_without_an_end_is_too_long() {
        let mut lines = Lines::default();
        let line = format!("data: {}\n", "x".repeat(1 << 20));
        let taken = (0..100).take_while(|_| {
            let is_taken = lines.take(line.as_bytes());
            assert_eq!(lines.next(), None);
            is_taken
        });
        assert_eq!(taken.count(), 7);
    }
}
