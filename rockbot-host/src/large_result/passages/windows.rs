//! The windows of a large result: stretches of a few lines, which are ranked.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use rockbot_core::store::{ChunkKeys, WorkingEntry};

use super::escapes::unescaped;
use crate::large_result::chunker::ContentChunker;

/// Maximum size of a window without what it shares with its neighbours, in characters.
const WINDOW_LEN: usize = 300;

/// Number of bytes that a window shares with the one before it, and with the one after it: a sentence at the border
/// of two windows is whole in one of them.
const SHARED: usize = 150;

/// Maximum length of a word that is kept whole at the border of a window, in bytes.
const MAX_WORD: usize = 100;

/// A stretch of a chunk.
#[derive(Debug)]
pub(super) struct Window<'a> {
    /// Index of the chunk.
    pub(super) chunk: usize,
    pub(super) entry: &'a WorkingEntry,
    pub(super) range: Range<usize>,
    /// The heading of the section, which may be in a chunk before this one.
    pub(super) heading: &'a str,
    /// The beginning of the next chunk, behind the last window of a chunk.
    tail: &'a str,
}

impl<'a> Window<'a> {
    /// Returns the text of the chunk.
    pub(super) fn value(&self) -> &'a str {
        &self.entry.value
    }

    /// Returns the text by which the window is found: with the heading of its section.
    pub(super) fn text(&self) -> Cow<'a, str> {
        let text = &self.value()[self.range.clone()];
        let text = match (self.heading, self.tail) {
            ("", "") => Cow::Borrowed(text),
            (heading, tail) => Cow::Owned([heading, "\n", text, tail].concat()),
        };
        unescaped(text)
    }
}

/// Returns the windows of `chunks`, in order.
pub(super) fn windows_of(chunks: &[Arc<WorkingEntry>]) -> Vec<Window<'_>> {
    let (mut windows, mut heading) = (Vec::new(), "");
    for (chunk, entry) in chunks.iter().enumerate() {
        if chunk == 0 || next_of(chunks, chunk - 1).is_none() {
            heading = "";
        }
        for (range, own) in ranges_of(&entry.value) {
            heading = own.unwrap_or(heading);
            windows.push(Window {
                chunk,
                entry,
                range,
                heading,
                tail: "",
            });
        }
        if let (Some(last), Some(next)) = (windows.last_mut(), next_of(chunks, chunk)) {
            let end = next.value.ceil_char_boundary((2 * SHARED).min(next.value.len()));
            last.tail = &next.value[..word_end(&next.value, end)];
        }
    }
    windows
}

/// Returns the chunk behind number `chunk`, if it belongs to the same result.
pub(super) fn next_of(chunks: &[Arc<WorkingEntry>], chunk: usize) -> Option<&WorkingEntry> {
    let (one, next) = (chunks[chunk].key.as_str(), chunks.get(chunk + 1)?);
    let other = next.key.as_str();
    let is_next = ChunkKeys::stem_of(one) == ChunkKeys::stem_of(other)
        && ChunkKeys::number_of(one).map(|number| number + 1) == ChunkKeys::number_of(other);
    is_next.then_some(next)
}

/// Returns the byte ranges of the windows of `text`, each with its heading where `text` has one before it. Windows
/// overlap, and begin and end between words.
fn ranges_of(text: &str) -> impl Iterator<Item = (Range<usize>, Option<&str>)> {
    let cores = ContentChunker::new(WINDOW_LEN).split(text);
    let mut reached = None;
    cores.into_iter().filter_map(move |core| {
        let Range { start, end } = core.range();
        let start = text.floor_char_boundary(start.saturating_sub(SHARED));
        let end = text.ceil_char_boundary((end + SHARED).min(text.len()));
        let window = word_start(text, start)..word_end(text, end);
        // A short end of the text is part of the window before it.
        let is_new = reached < Some(window.end);
        reached = reached.max(Some(window.end));
        is_new.then_some((window, (core.level > 0).then_some(core.heading)))
    })
}

/// Returns the start of the word that `at` is inside of, or `at` if it is between words.
pub(super) fn word_start(text: &str, at: usize) -> usize {
    let least = text.floor_char_boundary(at.saturating_sub(MAX_WORD));
    match text[at..].starts_with(is_in_word) {
        true => text[least..at]
            .rfind(|c| !is_in_word(c))
            .map_or(at, |before| text.ceil_char_boundary(least + before + 1)),
        false => at,
    }
}

/// Returns the end of the word that `at` is inside of, or `at` if it is between words.
pub(super) fn word_end(text: &str, at: usize) -> usize {
    let most = text.ceil_char_boundary((at + MAX_WORD).min(text.len()));
    match text[..at].ends_with(is_in_word) {
        true => text[at..most].find(|c| !is_in_word(c)).map_or(at, |after| at + after),
        false => at,
    }
}

fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_overlap_and_cut_no_word() {
        let lines: String = (0..2_000).map(|n| format!("line{n} straße_{n} says ok\n")).collect();
        let one_line: String = (0..2_000)
            .map(|n| format!("{{\"straßeName{n}\":\"value{n}\"}},"))
            .collect();
        let sections: String = (0..200)
            .map(|n| format!("# Part {n}\n\nword{n} and more\n\n"))
            .collect();
        for text in [lines, one_line, sections, "ä".repeat(5_000), String::new()] {
            let ranges: Vec<_> = ranges_of(&text).map(|(range, _)| range).collect();
            assert_eq!((ranges[0].start, ranges[ranges.len() - 1].end), (0, text.len()));
            for pair in ranges.windows(2) {
                let shared = pair[0].end - pair[1].start;
                assert!(shared >= 2 * SHARED.min(pair[0].len() / 2), "{pair:?}");
                assert!(text[pair[1].clone()].chars().count() <= WINDOW_LEN + 2 * (SHARED + MAX_WORD));
            }
            for at in ranges.iter().flat_map(|range| [range.start, range.end]) {
                let is_torn = text[..at].ends_with(is_in_word) && text[at..].starts_with(is_in_word);
                assert!(!is_torn || text.starts_with("ää"), "{at}");
            }
        }
    }
}
