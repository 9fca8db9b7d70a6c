//! Passages as a model reads them: a statement with its surroundings.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use rockbot_core::store::WorkingEntry;

use super::matches::Place;
use super::next_of;
use super::words::{word_end, word_start};
use crate::large_result::outline::push_plain;

/// Number of bytes that a passage repeats of one before it in the text.
const REPEATED: usize = 100;

/// The surroundings of a statement.
#[derive(Debug)]
pub(super) struct Passage<'a> {
    entry: &'a WorkingEntry,
    chunk: usize,
    range: Range<usize>,
    /// The beginning of the next chunk, if the passage goes on there.
    tail: &'a str,
    /// The heading of the section.
    heading: &'a str,
}

impl<'a> Passage<'a> {
    /// Creates a passage of about `length` bytes around `place`, which repeats little of the
    /// passages that are `shown`.
    pub(super) fn around(
        place: &Place,
        heading: Option<&Place>,
        length: usize,
        chunks: &'a [Arc<WorkingEntry>],
        shown: &[Self],
    ) -> Self {
        let entry = &chunks[place.chunk];
        let text = entry.value.as_str();
        let Range { start, end } = place.range;
        let more = length.saturating_sub(end - start);
        let ends = shown.iter().filter(|it| it.chunk == place.chunk).map(|it| it.range.end);
        let shown_before = ends.filter(|end| *end <= start).max().unwrap_or(0);
        // A heading is about the text below it.
        let before = if heading == Some(place) {
            0
        } else {
            (more / 2).min(start - shown_before.saturating_sub(REPEATED).min(start))
        };
        let start = text.floor_char_boundary(start.saturating_sub(before));
        let most = end + more - before;
        let end = text.ceil_char_boundary(most.min(text.len()));
        let beyond = most.saturating_sub(text.len());
        let tail = next_of(chunks, place.chunk).map_or("", |next| {
            let end = next.value.ceil_char_boundary(beyond.min(next.value.len()));
            &next.value[..word_end(&next.value, end)]
        });
        // A line break in front would part the passage from its key.
        let start = word_start(text, start);
        let breaks = text[start..end].len() - text[start..end].trim_start_matches(['\r', '\n']).len();
        Self {
            entry,
            chunk: place.chunk,
            range: start + breaks..word_end(text, end),
            tail,
            heading: heading.map_or("", |heading| heading_of(&chunks[heading.chunk].value, &heading.range)),
        }
    }

    /// Returns `true` if the passage shows all of `place`.
    pub(super) fn shows(&self, place: &Place) -> bool {
        let Range { start, end } = place.range;
        self.chunk == place.chunk && self.range.start <= start && end <= self.range.end + self.tail.len()
    }

    /// Appends the passage, with its key, its offset and the heading of its section.
    pub(super) fn push_to(&self, text: &mut String) {
        let value = self.entry.value.as_str();
        let offset = value[..self.range.start].chars().count();
        let shown = &value[self.range.clone()];
        write!(text, "[from `{}`, offset {offset}", self.entry.key).expect("a String takes everything");
        // The subject of a section often stands in its heading alone.
        if !self.heading.is_empty() && !shown.contains(self.heading) {
            text.push_str(", under: ");
            push_plain(text, self.heading);
        }
        text.push_str("]\n");
        text.push_str(shown);
        text.push_str(self.tail);
        text.truncate(text.trim_end().len());
        text.push_str("\n\n");
    }
}

/// Returns the text of the heading at `range`.
fn heading_of<'a>(text: &'a str, range: &Range<usize>) -> &'a str {
    text[range.start..range.end.min(text.len())]
        .trim_start_matches('#')
        .trim()
}
