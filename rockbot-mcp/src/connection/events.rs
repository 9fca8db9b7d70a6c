//! A parser of [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html), bounded in size.

use std::collections::VecDeque;

/// An event.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// The member `event`; empty if there is none.
    pub(super) kind: String,
    /// The members `data`, joined by line breaks.
    pub(super) data: String,
}

/// The parser. Chunks are pushed, events are popped.
#[derive(Debug)]
pub(super) struct Events {
    max: usize,
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    /// `true` if the present event is too long: it is left out.
    is_too_long: bool,
    ready: VecDeque<Event>,
}

impl Events {
    /// Creates a parser of events of at most `max` bytes. A longer event is left out.
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            line: Vec::new(),
            event: Event::default(),
            has_data: false,
            is_too_long: false,
            ready: VecDeque::new(),
        }
    }

    /// Adds a chunk of the stream. A line ends with a line feed; a carriage return before it is
    /// dropped.
    pub(super) fn push(&mut self, mut chunk: &[u8]) {
        while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
            self.extend(&chunk[..end]);
            self.end_line();
            chunk = &chunk[end + 1..];
        }
        self.extend(chunk);
    }

    /// Returns the next complete event.
    pub(super) fn pop(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.line.len() + self.event.data.len() + bytes.len() > self.max {
            self.is_too_long = true;
            self.event.data.clear();
            self.line.clear();
            return;
        }
        self.line.extend_from_slice(bytes);
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line)).into_owned();
        if line.is_empty() {
            return self.end_event();
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.event.kind),
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(value);
            }
            _ => {}
        }
    }

    fn end_event(&mut self) {
        let event = std::mem::take(&mut self.event);
        let is_whole = !std::mem::take(&mut self.is_too_long);
        if std::mem::take(&mut self.has_data) && is_whole {
            self.ready.push_back(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(max: usize, chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut events = Events::new(max);
        chunks.iter().for_each(|chunk| events.push(chunk));
        std::iter::from_fn(|| events.pop())
            .map(|event| (event.kind, event.data))
            .collect()
    }

    #[test]
    fn events_are_read_across_chunks_and_long_ones_are_left_out() {
        let text = b": hi\r\nevent: endpoint\r\ndata: /post?id=1\r\n\r\ndata:a\ndata: b\n\nevent: x\n\n";
        let pair = |kind: &str, data: &str| (kind.to_owned(), data.to_owned());
        let expected = [pair("endpoint", "/post?id=1"), pair("", "a\nb")];
        assert_eq!(parsed(100, &[text]), expected);
        let long = [b"data: ".as_slice(), &[b'x'; 200], b"\n\ndata: short\n\n"];
        assert_eq!(parsed(100, &long), [pair("", "short")]);
    }

    proptest! {
        #[test]
        fn the_chunks_make_no_difference(text in "(data|event|x|:| |\n|\r\n){0,40}", at in 0..40_usize) {
            let at = at.min(text.len());
            let (one, two) = text.as_bytes().split_at(at);
            prop_assert_eq!(parsed(1000, &[text.as_bytes()]), parsed(1000, &[one, two]));
        }
    }
}
