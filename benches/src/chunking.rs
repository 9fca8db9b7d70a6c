//! Chunking of Markdown with an outline, and the same rules in one pass by hand.

use std::fmt;
use std::hint::black_box;

use memchr::memchr;
use rockbot_host::large_result::{ContentChunker, outline};

use crate::{median, thread_seconds};

/// The result of one implementation.
#[derive(Debug, Clone, Copy)]
pub struct Chunked {
    /// Number of chunks.
    pub chunks: usize,
    /// Number of characters of the longest chunk.
    pub largest: usize,
    /// Median CPU time, in seconds.
    pub seconds: f64,
}

/// The key of a chunk, formatted without a copy.
struct Key(usize);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session/a/tool-web_browse-a1b2c3-chunk{}", self.0)
    }
}

/// Cuts `text` with the chunker, and writes an outline with keys.
pub fn ours(text: &str, max_len: usize) -> Vec<&str> {
    let chunks = ContentChunker::new(max_len).split(text);
    black_box(outline(&chunks, usize::MAX, Key));
    chunks.iter().map(|chunk| chunk.text).collect()
}

/// Cuts `text` with the chunker, without an outline.
pub fn without_outline(text: &str, max_len: usize) -> Vec<&str> {
    let chunks = ContentChunker::new(max_len).split(text);
    chunks.iter().map(|chunk| chunk.text).collect()
}

/// Runs the implementations alternately, `rounds` times, and returns the result of each with its
/// median CPU time.
pub fn measure<'t, const N: usize>(rounds: usize, ways: [&dyn Fn() -> Vec<&'t str>; N]) -> [Chunked; N] {
    let mut seconds = [(); N].map(|()| Vec::with_capacity(rounds));
    for _ in 0..rounds {
        for (way, seconds) in ways.iter().zip(&mut seconds) {
            let start = thread_seconds();
            black_box(way());
            seconds.push(thread_seconds() - start);
        }
    }
    let mut seconds = seconds.into_iter().map(median);
    ways.map(|way| {
        let chunks = way();
        Chunked {
            chunks: chunks.len(),
            largest: chunks
                .iter()
                .map(|chunk| chunk.chars().count())
                .max()
                .unwrap_or_default(),
            seconds: seconds.next().unwrap_or_default(),
        }
    })
}

/// Cuts `text` in one pass over the lines: at headings outside fences, then at blank lines, then
/// between characters.
pub fn by_hand(text: &str, max_len: usize) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut chunks = Vec::new();
    let mut section = 0;
    let mut position = 0;
    let mut in_fence = false;
    let mut blanks = Vec::new();
    while position < bytes.len() {
        let end = memchr(b'\n', &bytes[position..]).map_or(bytes.len(), |at| position + at + 1);
        let line = &bytes[position..end];
        if line.starts_with(b"```") || line.starts_with(b"~~~") {
            in_fence = !in_fence;
        } else if !in_fence && line[0] == b'#' {
            let level = line.iter().take_while(|byte| **byte == b'#').count();
            if level <= 3 && line.get(level) == Some(&b' ') && position > section {
                cut(text, section..position, &blanks, max_len, &mut chunks);
                (section, position) = (position, end);
                blanks.clear();
                continue;
            }
        } else if !in_fence && line[0] == b'\n' {
            blanks.push(end);
        }
        position = end;
    }
    cut(text, section..bytes.len(), &blanks, max_len, &mut chunks);
    chunks
}

fn cut<'t>(
    text: &'t str,
    section: std::ops::Range<usize>,
    blanks: &[usize],
    max_len: usize,
    chunks: &mut Vec<&'t str>,
) {
    if section.len() <= max_len {
        chunks.push(&text[section]);
        return;
    }
    let (mut start, mut from, mut held) = (section.start, section.start, 0);
    for &end in blanks.iter().chain([&section.end]) {
        let length = text[from..end].chars().count();
        if held > 0 && held + length > max_len {
            chunks.push(&text[start..from]);
            (start, held) = (from, 0);
        }
        held += length;
        while held > max_len {
            let at = text[start..]
                .char_indices()
                .nth(max_len)
                .map_or(end, |(at, _)| start + at);
            chunks.push(&text[start..at]);
            (start, held) = (at, held - max_len);
        }
        from = end;
    }
    if start < section.end {
        chunks.push(&text[start..section.end]);
    }
}
