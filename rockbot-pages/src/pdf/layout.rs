//! The text of a page, from pieces at places.

use super::accents::composed;

/// Gap between two pieces in a line that is a space, in heights of the font.
pub(super) const SPACE: f64 = 0.1;

/// Distance back from the end of a piece, in heights of the font, where the next piece overlaps
/// it.
const OVERLAP: f64 = 0.1;

/// Distance between two pieces that is a new line, in heights of the font.
const LINE: f64 = 0.5;

/// Distance between two lines that is a new paragraph, in heights of the font.
const PARAGRAPH: f64 = 1.9;

/// A page shows its unknown characters if it has at most one for so many others.
const FEW: usize = 5;

/// A character that the document does not make known.
const UNKNOWN: char = char::REPLACEMENT_CHARACTER;

/// A point of a page.
pub(super) type Point = (f64, f64);

/// The text of a page while it is read, in the order of the document.
#[derive(Debug)]
pub(super) struct Layout {
    text: String,
    /// The place behind the last piece.
    end: Option<Point>,
    /// `true` if the next character overlaps the last character.
    overlaps: bool,
    max: usize,
}

/// The text of a page.
#[derive(Debug, Default)]
pub(super) struct PageText {
    /// The text that can be read. Empty if there is none.
    pub(super) text: String,
    /// Number of unknown characters that are not shown.
    pub(super) lost: usize,
    /// Number of characters, without spaces.
    pub(super) characters: usize,
}

impl Layout {
    /// Creates an empty page that takes up to `max` bytes of text.
    pub(super) fn new(max: usize) -> Self {
        Self {
            text: String::new(),
            end: None,
            overlaps: false,
            max,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.text.len() >= self.max
    }

    /// Begins a piece at this point. `axis` is the direction of writing, of length 1; `height` is the
    /// height of its font.
    pub(super) fn begin(&mut self, start: Point, axis: Point, height: f64) {
        let Some(end) = self.end.filter(|_| !self.text.is_empty()) else {
            return;
        };
        let x = start.0 - end.0;
        let y = start.1 - end.1;
        let along = x * axis.0 + y * axis.1;
        let across = (x * axis.1 - y * axis.0).abs();
        self.overlaps = across <= LINE * height && (-height..-OVERLAP * height).contains(&along);
        if across > PARAGRAPH * height {
            self.text.push_str("\n\n");
        } else if across > LINE * height {
            self.text.push('\n');
        } else if along > SPACE * height || along < -height {
            self.text.push(' ');
        }
    }

    /// Ends a piece at this point.
    pub(super) fn end(&mut self, end: Point) {
        self.end = Some(end);
    }

    /// Appends the characters of a glyph.
    pub(super) fn push(&mut self, characters: &str) {
        for character in characters.chars() {
            let last = self.text.chars().next_back().filter(|_| self.overlaps);
            self.overlaps = false;
            if let Some(composed) = last.and_then(|last| composed(last, character)) {
                self.text.pop();
                self.text.push(composed);
                continue;
            }
            match character {
                _ if self.is_full() => return,
                'ﬀ' => self.text.push_str("ff"),
                'ﬁ' => self.text.push_str("fi"),
                'ﬂ' => self.text.push_str("fl"),
                'ﬃ' => self.text.push_str("ffi"),
                'ﬄ' => self.text.push_str("ffl"),
                '\u{a0}' | '\t' | '\n' | '\r' => self.text.push(' '),
                character if character.is_control() || character == '\u{ad}' => {}
                character => self.text.push(character),
            }
        }
    }

    /// Returns the text, without spaces at the ends of lines and without more than one empty line at
    /// a time. Words with unknown characters are left out where such characters are many.
    pub(super) fn finish(self) -> PageText {
        let lost = self.text.matches(UNKNOWN).count();
        let read = self.text.chars().filter(|character| !character.is_whitespace()).count() - lost;
        let is_flood = lost * FEW > read;
        let is_kept = |word: &&str| !(word.is_empty() || is_flood && word.contains(UNKNOWN));
        let mut text = String::with_capacity(self.text.len());
        for line in self.text.lines() {
            let words: Vec<_> = line.split(' ').filter(is_kept).collect();
            let is_second_empty = words.is_empty() && (text.is_empty() || text.ends_with("\n\n"));
            if !is_second_empty {
                text.push_str(&words.join(" "));
                text.push('\n');
            }
        }
        text.truncate(text.trim_end().len());
        PageText {
            text,
            lost: if is_flood { lost } else { 0 },
            characters: read + lost,
        }
    }
}
