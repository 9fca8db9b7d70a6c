//! Splitting of Markdown at headings, else between paragraphs, else anywhere but inside a
//! character.
//!
//! Sections share chunks when there would be more than 50: a document of a thousand small
//! sections is otherwise a thousand keys.

mod lines;

use std::ops::Range;

use memchr::memrchr;

pub(super) use lines::{Line, Lines};

/// A splitter of Markdown into chunks of bounded length.
///
/// A chunk begins at each line that starts with `# `, `## ` or `### `. A section that is too long
/// is cut at blank lines, and around code fences. A paragraph or a fence that alone is too long
/// is cut at the end of a line if there is a line end in the second half of the text that fits,
/// and between any two characters otherwise. Nothing inside a fence is a heading or a blank line.
/// A carriage return stays with its line feed.
///
/// Concatenated, the chunks are the text, byte for byte. An empty text is one empty chunk. The
/// time is linear in the length of the text; nothing is copied.
///
/// ```
/// use rockbot_host::large_result::ContentChunker;
///
/// let text = "# Models\nAll of them.\n\n## Pricing\nCheap.\n\nVery cheap indeed.\n";
/// let titles: Vec<_> = ContentChunker::new(20)
///     .split(text)
///     .iter()
///     .enumerate()
///     .map(|(index, chunk)| chunk.title(index))
///     .collect();
/// assert_eq!(titles, ["Models", "Models (continued 1)", "Pricing", "Pricing (continued 1)"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentChunker {
    max_len: usize,
}

/// A chunk of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chunk<'t> {
    /// The text of the chunk, its heading included.
    pub text: &'t str,
    /// Byte offset in the whole text.
    pub start: usize,
    /// The heading of its section, without the `#`; empty before the first heading.
    pub heading: &'t str,
    /// The level of that heading: 1 to 3, or 0 before the first heading.
    pub level: u8,
    /// Number of the chunk in its section, from 0.
    pub part: usize,
}

impl Chunk<'_> {
    /// Returns the byte range in the whole text.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// Returns a title for chunk number `index`: the heading, followed by `(continued n)` on further
    /// chunks of the same section, or `Part {index}` without a heading.
    pub fn title(&self, index: usize) -> String {
        match (self.heading, self.part) {
            ("", _) => format!("Part {index}"),
            (heading, 0) => heading.to_owned(),
            (heading, part) => format!("{heading} (continued {part})"),
        }
    }
}

impl ContentChunker {
    /// Creates a splitter into chunks of at most `max_len` characters; at least 2, so that a CRLF fits.
    pub fn new(max_len: usize) -> Self {
        Self {
            max_len: max_len.max(2),
        }
    }

    /// Splits `text` into chunks, in order. There is at least one.
    pub fn split<'t>(&self, text: &'t str) -> Vec<Chunk<'t>> {
        let mut chunks = Vec::new();
        let mut section = Section::default();
        let mut lines = Lines::default();
        while let Some((start, end, line)) = lines.next(text.as_bytes()) {
            let Line::Heading(level) = line else { continue };
            // Blank lines before the first heading are not worth a chunk.
            let begins = if section.level == 0 && text[..start].trim_ascii().is_empty() {
                section.start
            } else {
                self.split_section(text, section, start, &mut chunks);
                start
            };
            section = Section {
                start: begins,
                heading: text[start + usize::from(level)..end].trim(),
                level,
            };
        }
        self.split_section(text, section, text.len(), &mut chunks);
        chunks
    }

    /// Splits one section, which ends at `end`.
    fn split_section<'t>(&self, text: &'t str, section: Section<'t>, end: usize, chunks: &mut Vec<Chunk<'t>>) {
        let whole = &text[section.start..end];
        if self.fits(whole) {
            chunks.push(section.piece(whole, 0, 0));
            return;
        }
        let mut start = 0;
        let mut part = 0;
        let mut emit = |end: usize| {
            chunks.push(section.piece(&whole[start..end], start, part));
            (start, part) = (end, part + 1);
        };
        let mut from = 0;
        let mut held = 0;
        for block in Blocks::of(whole) {
            let length = whole[block.clone()].chars().count();
            // A block that must be cut anyway goes on after the text in front of it, such as its
            // heading.
            if held > 0 && held + length > self.max_len && length <= self.max_len {
                emit(block.start);
                (from, held) = (block.start, 0);
            }
            held += length;
            while held > self.max_len {
                let (bytes, characters) = self.hard_cut(&whole[from..block.end]);
                emit(from + bytes);
                (from, held) = (from + bytes, held - characters);
            }
        }
        if held > 0 {
            emit(whole.len());
        }
    }

    fn fits(&self, text: &str) -> bool {
        text.len() <= self.max_len || text.chars().count() <= self.max_len
    }

    /// Returns how much of the too long `text` the next chunk takes, in bytes and in characters.
    fn hard_cut(&self, text: &str) -> (usize, usize) {
        let mut rest = text.chars();
        rest.nth(self.max_len - 1);
        let fitting = &text[..text.len() - rest.as_str().len()];
        match memrchr(b'\n', fitting.as_bytes()) {
            Some(at) if at + 1 > fitting.len() / 2 => {
                let beyond = fitting[at + 1..].chars().count();
                (at + 1, self.max_len - beyond)
            }
            _ if fitting.ends_with('\r') && rest.as_str().starts_with('\n') => (fitting.len() - 1, self.max_len - 1),
            _ => (fitting.len(), self.max_len),
        }
    }
}

/// The start of a section, with its heading.
#[derive(Debug, Clone, Copy, Default)]
struct Section<'t> {
    start: usize,
    heading: &'t str,
    level: u8,
}

impl<'t> Section<'t> {
    fn piece(self, text: &'t str, offset: usize, part: usize) -> Chunk<'t> {
        Chunk {
            text,
            start: self.start + offset,
            heading: self.heading,
            level: self.level,
            part,
        }
    }
}

/// An iterator over the blocks that are split only when they alone are too long: paragraphs,
/// fences, blank lines.
struct Blocks<'t> {
    text: &'t [u8],
    lines: Lines,
    start: usize,
    /// The kind of the block's last line, and whether a fence was open after it.
    last: Option<(Line, bool)>,
}

impl<'t> Blocks<'t> {
    fn of(text: &'t str) -> Self {
        Self {
            text: text.as_bytes(),
            lines: Lines::default(),
            start: 0,
            last: None,
        }
    }

    /// Returns `true` if a block ends between a line of kind `last` and a line of kind `next`.
    fn is_between(last: (Line, bool), next: Line) -> bool {
        let was_in_fence = last.1;
        let was_fenced = matches!(last.0, Line::Fenced | Line::FenceStart);
        !was_in_fence && (was_fenced || next == Line::FenceStart || (last.0 == Line::Blank) != (next == Line::Blank))
    }
}

impl Iterator for Blocks<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        while let Some((start, _, line)) = self.lines.next(self.text) {
            let last = self.last.replace((line, self.lines.is_in_fence()));
            if last.is_some_and(|last| Self::is_between(last, line)) {
                let block = self.start..start;
                self.start = start;
                return Some(block);
            }
        }
        let rest = self.start..self.text.len();
        self.start = self.text.len();
        (!rest.is_empty()).then_some(rest)
    }
}

#[cfg(test)]
mod tests;
