//! Server-sent events: bytes in, the data of whole events out.
//!
//! A parser of its own, because an event must be bounded in size, which no published parser
//! offers, and because data is read in place: nothing is copied out of the buffer.

use std::ops::Range;

/// Cuts a byte stream into events. Line ends are LF, CR LF or CR; events may arrive in pieces of
/// any size.
#[derive(Debug)]
pub(crate) struct SseDecoder {
    buffer: Vec<u8>,
    /// Start of the unfinished line.
    line: usize,
    /// End of the part of that line that was searched for a line end.
    searched: usize,
    /// The data of the unfinished event.
    data: Option<Range<usize>>,
    /// The last line ended in CR as the last byte received: an LF that follows belongs to it.
    after_cr: bool,
    /// No line was seen yet: a byte order mark may stand before it.
    at_start: bool,
    limit: usize,
}

/// An event is longer than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EventTooLong;

impl SseDecoder {
    /// Creates a decoder of events of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            line: 0,
            searched: 0,
            data: None,
            after_cr: false,
            at_start: true,
            limit,
        }
    }

    /// Takes in the next bytes. To be followed by [`SseDecoder::next_event`] until there is none.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.forget_events_read();
        self.buffer.extend_from_slice(bytes);
    }

    /// Ends the stream: an event without its closing blank line counts as whole.
    pub(crate) fn finish(&mut self) {
        self.feed(b"\n\n");
    }

    /// Returns the data of the next whole event, if there is one.
    pub(crate) fn next_event(&mut self) -> Result<Option<&[u8]>, EventTooLong> {
        while let Some(line) = self.next_line() {
            if !line.is_empty() {
                self.take_line(line);
            } else if let Some(data) = self.data.take() {
                return if data.len() > self.limit {
                    Err(EventTooLong)
                } else {
                    Ok(Some(&self.buffer[data]))
                };
            }
        }
        if self.buffer.len() - self.unread() > self.limit {
            Err(EventTooLong)
        } else {
            Ok(None)
        }
    }

    fn next_line(&mut self) -> Option<Range<usize>> {
        if self.after_cr && self.line < self.buffer.len() {
            self.after_cr = false;
            if self.buffer[self.line] == b'\n' {
                self.line += 1;
                self.searched = self.line;
            }
        }
        let Some(length) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let end = self.searched + length;
        let line = self.line..end;
        self.line = end + 1;
        self.searched = self.line;
        self.after_cr = self.buffer[end] == b'\r';
        Some(self.without_byte_order_mark(line))
    }

    fn without_byte_order_mark(&mut self, line: Range<usize>) -> Range<usize> {
        let marked = self.at_start && self.buffer[line.clone()].starts_with(b"\xEF\xBB\xBF");
        self.at_start = false;
        if marked { line.start + 3..line.end } else { line }
    }

    /// Keeps the value of a `data` line; comments and other fields are of no interest here.
    fn take_line(&mut self, line: Range<usize>) {
        let text = &self.buffer[line.clone()];
        let skipped = match text {
            b"data" => 4,
            _ if text.starts_with(b"data: ") => 6,
            _ if text.starts_with(b"data:") => 5,
            _ => return,
        };
        let value = line.start + skipped..line.end;
        self.data = Some(match self.data.take() {
            None => value,
            Some(data) => self.append(data, value),
        });
    }

    /// Moves `value` behind `data`, where its own line's `data:` leaves room for the line end between
    /// the two.
    fn append(&mut self, data: Range<usize>, value: Range<usize>) -> Range<usize> {
        let end = data.end + 1 + value.len();
        self.buffer[data.end] = b'\n';
        self.buffer.copy_within(value, data.end + 1);
        data.start..end
    }

    /// Returns the start of the bytes that are still needed.
    fn unread(&self) -> usize {
        self.data.as_ref().map_or(self.line, |data| data.start)
    }

    fn forget_events_read(&mut self) {
        let read = self.unread();
        self.buffer.drain(..read);
        self.line -= read;
        self.searched -= read;
        if let Some(data) = &mut self.data {
            *data = data.start - read..data.end - read;
        }
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::testing::Mutations;

    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut decoder = SseDecoder::new(64);
        let mut events = Vec::new();
        let mut drain = |decoder: &mut SseDecoder| {
            while let Some(data) = decoder.next_event().unwrap() {
                events.push(String::from_utf8(data.to_vec()).unwrap());
            }
        };
        for piece in pieces {
            decoder.feed(piece);
            drain(&mut decoder);
        }
        decoder.finish();
        drain(&mut decoder);
        events
    }

    /// `stream` gives `expected` in one piece, byte by byte, and cut in two anywhere.
    fn check(stream: &str, expected: &[&str]) {
        let bytes = stream.as_bytes();
        assert_eq!(events(&[bytes]), expected, "{stream:?}");
        assert_eq!(
            events(&bytes.chunks(1).collect::<Vec<_>>()),
            expected,
            "{stream:?} byte by byte"
        );
        for middle in 0..bytes.len() {
            let (a, b) = bytes.split_at(middle);
            assert_eq!(events(&[a, b]), expected, "{stream:?} cut at {middle}");
        }
    }

    #[test]
    fn every_line_end_and_spacing_is_read() {
        check("data: a\n\ndata:b\n\n", &["a", "b"]);
        check("data: a\r\n\r\ndata:b\r\n\r\n", &["a", "b"]);
        check("data: a\r\rdata:b\r\r", &["a", "b"]);
        check("data:  two spaces\n\n", &[" two spaces"]);
    }

    #[test]
    fn comments_other_fields_and_a_byte_order_mark_are_skipped() {
        check(
            ": keep-alive\n\n\u{feff}x\n\nevent: delta\nid: 7\ndata: a\nretry: 1\n\n",
            &["a"],
        );
        check("\u{feff}data: a\n\n", &["a"]);
    }

    #[test]
    fn data_lines_of_one_event_are_joined() {
        check("data: {\ndata:\r\n: note\ndata\ndata: \"é\"}\n\n", &["{\n\n\n\"é\"}"]);
    }

    #[test]
    fn the_last_event_needs_no_blank_line() {
        check("data: a\n\ndata: [DONE]", &["a", "[DONE]"]);
        check("\n\n", &[]);
    }

    #[test]
    fn an_event_beyond_the_limit_is_refused() {
        let mut decoder = SseDecoder::new(8);
        decoder.feed(b"data: 12345678\n\n");
        assert_eq!(decoder.next_event(), Ok(Some(&b"12345678"[..])));
        decoder.feed(b"data: 123456789\n\n");
        assert_eq!(decoder.next_event(), Err(EventTooLong));
        let mut decoder = SseDecoder::new(8);
        decoder.feed(b"data: never ends");
        assert_eq!(decoder.next_event(), Err(EventTooLong));
        let mut decoder = SseDecoder::new(8);
        decoder.feed(b"data: 1\n: comments after data\n");
        assert_eq!(decoder.next_event(), Err(EventTooLong));
    }

    /// The events of a stream that arrives in pieces of `size` bytes, up to the first that is too long.
    fn events_in_pieces(stream: &[u8], size: usize) -> Vec<Vec<u8>> {
        let mut decoder = SseDecoder::new(1_000);
        let mut events = Vec::new();
        let mut pieces = stream.chunks(size);
        loop {
            let last = pieces.next().map(|piece| decoder.feed(piece)).is_none();
            if last {
                decoder.finish();
            }
            loop {
                match decoder.next_event() {
                    Ok(Some(event)) => events.push(event.to_vec()),
                    Ok(None) => break,
                    Err(EventTooLong) => return events,
                }
            }
            if last {
                return events;
            }
        }
    }

    #[test]
    fn broken_streams_have_the_same_events_in_pieces_of_any_size() {
        let corpus = [
            "event: x\ndata: {\"a\":1}\n\ndata: b\ndata: c\n\n: comment\n\ndata: [DONE]\n\n",
            "\u{feff}data:one\r\n\r\nid: 7\r\ndata\r\n\r\n",
            "data: zw\u{f6}lf\rdata: \u{1f680}\r\rretry: 10\r\r",
        ];
        Mutations::of(corpus).check(|stream| {
            let whole = events_in_pieces(stream, 1);
            let length: usize = whole.iter().map(Vec::len).sum();
            assert!(length <= stream.len() && whole.iter().all(|event| event.len() <= 1_000));
            if stream.len() < 900 {
                assert_eq!(events_in_pieces(stream, 7), whole);
                assert_eq!(events_in_pieces(stream, stream.len().max(1)), whole);
            }
        });
    }
}
