//! Answers that come in messages or sections, with words, thoughts and calls in parts of their own.

use std::ops::Range;

use crate::tools::CallSite;

/// Tokens at the beginning or end of a message or a section.
pub(super) const OPENERS: [&str; 4] = ["<|channel|>", "<|start|>", "<|open|>", "<|close|>"];

/// The parts of an answer, or of the end of one.
#[derive(Debug, Default)]
pub(crate) struct Framed {
    /// The calls in order, malformed ones included. Empty for an answer in words.
    pub(crate) sites: Vec<CallSite>,
    /// Byte ranges of the words for a person, in order. Headers and thoughts are around them.
    pub(crate) words: Vec<Range<usize>>,
    /// Byte offset of the end of the thoughts: before it, only these sites can be calls.
    pub(crate) settled: usize,
}

impl Framed {
    /// Adds words, without the white space around them.
    pub(super) fn add_words(&mut self, text: &str, range: Range<usize>) {
        let words = &text[range.clone()];
        let start = range.start + words.len() - words.trim_start().len();
        let end = start + words.trim().len();
        self.words.extend((start < end).then_some(start..end));
    }
}
