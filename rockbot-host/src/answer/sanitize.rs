//! Sanitizing text: removing the addresses of links, images and HTML that are not allowed.
//!
//! The scan looks for the pair of characters that every link contains, `](` or `]:`, whatever
//! comes before it. It does not parse Markdown: parsers disagree on brackets, escapes and code,
//! and an attacker would use the difference. It looks ahead a bounded distance, so that its time
//! is linear, and text that cannot be part of a link leaves at once. A link that is longer than
//! the bound counts as not allowed.

use std::collections::VecDeque;

use super::address::{AllowedUrls, balanced, may_become_url, named_host, url};

/// Maximum distance that the scan looks ahead, in bytes: the longest link address with its title,
/// and the longest tag.
const LOOK_AHEAD: usize = 2_048;

/// Maximum length of a link's text, in bytes. The text of a link that is not allowed is kept, so
/// it is held back.
const MAX_LABEL: usize = 1_024;

/// Maximum length of an incomplete element that is read again with each piece, in bytes. Most
/// links are shorter.
const READ_AT_ONCE: usize = 128;

/// HTML elements that change how the text after them is read.
const RAW_ELEMENTS: [&str; 9] = [
    "iframe",
    "noembed",
    "noframes",
    "plaintext",
    "script",
    "style",
    "textarea",
    "title",
    "xmp",
];

/// A writer of text without the addresses that are not allowed. The output does not depend on how
/// the text is cut into pieces: an element that could go on is held back.
#[derive(Debug)]
pub(super) struct Sanitizer {
    allowed: AllowedUrls,
    /// Text that is not read yet: an incomplete element.
    pending: String,
    /// Length of `pending` when it was found to be incomplete.
    incomplete: usize,
    /// Sanitized text that is held back, because a link around it may not be allowed.
    out: String,
    /// Number of bytes that have left `out`.
    shown: usize,
    /// Positions of the open brackets, counted from the start of all output.
    open: VecDeque<usize>,
    /// The last character that was written.
    last: Option<char>,
}

/// The text in front of the scan, up to the look-ahead.
#[derive(Clone, Copy)]
struct Ahead<'a> {
    text: &'a str,
    end: End,
}

/// The reason why the text ahead ends where it does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// More text may come.
    Open,
    /// The paragraph or the answer ends here.
    Final,
    /// The look-ahead ends here.
    Bound,
}

/// A request to wait for more text.
struct Incomplete;

/// The number of bytes that were read.
type Read = Result<usize, Incomplete>;

impl Sanitizer {
    pub(super) fn new(allowed: AllowedUrls) -> Self {
        Self {
            allowed,
            pending: String::new(),
            incomplete: 0,
            out: String::new(),
            shown: 0,
            open: VecDeque::new(),
            last: None,
        }
    }

    /// Reads more text, and appends the certain part to `shown`.
    pub(super) fn push(&mut self, text: &str, shown: &mut String) {
        self.pending.push_str(text);
        // A long element is read again when it has grown by an eighth, so that an element in small
        // pieces is read nine times, and not once for each piece.
        let grown = self.pending.len() - self.incomplete;
        if grown < self.incomplete.saturating_sub(READ_AT_ONCE) / 8 {
            return;
        }
        self.run(false);
        self.release(shown);
    }

    /// Ends a paragraph, which no link spans, and appends all of it to `shown`.
    pub(super) fn flush(&mut self, shown: &mut String) {
        self.run(true);
        self.open.clear();
        self.shown += self.out.len();
        shown.push_str(&self.out);
        self.out.clear();
    }

    /// Writes the elements that are complete; all of them if no more text comes.
    fn run(&mut self, is_final: bool) {
        let mut pending = std::mem::take(&mut self.pending);
        let mut rest = pending.as_str();
        while let Some(first) = rest.chars().next() {
            match self.step(Ahead::of(rest, is_final), first) {
                Ok(read) => rest = &rest[read..],
                Err(Incomplete) => break,
            }
            self.forget_distant();
        }
        self.incomplete = rest.len();
        pending.drain(..pending.len() - rest.len());
        self.pending = pending;
    }

    /// Drops an open bracket that is too far back. Done after each element, so that it does not
    /// depend on the pieces.
    fn forget_distant(&mut self) {
        let written = self.shown + self.out.len();
        if self.open.front().is_some_and(|open| written - open > MAX_LABEL) {
            self.open.pop_front();
        }
    }

    /// Moves the text before the first bracket that may begin a link to `shown`.
    fn release(&mut self, shown: &mut String) {
        let mut held_from = self.open.front().map_or(self.out.len(), |open| open - self.shown);
        // The mark of an image goes with its bracket.
        if self.out[..held_from].ends_with('!') {
            held_from -= 1;
        }
        shown.push_str(&self.out[..held_from]);
        self.out.drain(..held_from);
        self.shown += held_from;
    }

    /// Writes the next element, and returns its length.
    fn step(&mut self, ahead: Ahead<'_>, first: char) -> Read {
        match first {
            '[' => self.open.push_back(self.shown + self.out.len()),
            ']' => return self.close(ahead),
            '<' => return self.tag(ahead),
            'h' | 'H' | 'f' | 'F' | 'w' | 'W' if self.may_begin(first) => {
                if let Some((url, is_cut)) = ahead.url()? {
                    self.address(url, is_cut);
                    return Ok(url.len());
                }
            }
            _ => {}
        }
        self.out.push(first);
        self.last = Some(first);
        Ok(first.len_utf8())
    }

    fn write(&mut self, text: &str) {
        self.out.push_str(text);
        self.last = text.chars().next_back().or(self.last);
    }

    /// Returns `true` if an address can begin with `first` here; `www.` begins one only at the start
    /// of a word.
    fn may_begin(&self, first: char) -> bool {
        !matches!(first, 'w' | 'W') || !self.last.is_some_and(char::is_alphanumeric)
    }

    /// Writes a plain address, or its host.
    fn address(&mut self, url: &str, is_cut: bool) {
        if self.permits(url, is_cut) {
            self.write(url)
        } else {
            self.write(&named_host(url))
        }
    }

    /// Returns `true` if an address is allowed. An address that goes on behind the look-ahead is
    /// not.
    fn permits(&self, address: &str, is_cut: bool) -> bool {
        !is_cut && self.allowed.permits(address)
    }

    fn close(&mut self, ahead: Ahead<'_>) -> Read {
        let next = ahead.text.as_bytes().get(1);
        if next.is_none() {
            ahead.wait_for_more()?;
        }
        match next {
            Some(b'(') => self.link(ahead),
            Some(b':') => self.definition(ahead),
            _ => {
                self.open.pop_back();
                self.write("]");
                Ok(1)
            }
        }
    }

    /// Writes the address of a link or an image; its text has been written already.
    fn link(&mut self, ahead: Ahead<'_>) -> Read {
        let (address, behind) = ahead.destination()?;
        let is_cut = ahead.is_cut_at(behind);
        if self.permits(address, is_cut) {
            self.open.pop_back();
            self.write(&ahead.text[..behind]);
            return Ok(behind);
        }
        let end = if is_cut { None } else { ahead.end_of_link(behind)? };
        let (Some(open), Some(end)) = (self.open.pop_back(), end) else {
            self.write("] (");
            return Ok(2);
        };
        let label = self.out.split_off(open - self.shown);
        if self.out.ends_with('!') {
            self.out.pop();
        }
        self.write(&label[1..]);
        self.write(&format!(" ({})", named_host(address)));
        Ok(end)
    }

    /// Writes a link definition, or breaks it apart if its address is not allowed.
    fn definition(&mut self, ahead: Ahead<'_>) -> Read {
        let (address, behind) = ahead.destination()?;
        self.open.pop_back();
        // A bracket after the colon begins text, not an address.
        if self.permits(address, ahead.is_cut_at(behind) && !address.is_empty()) {
            self.write(&ahead.text[..behind]);
            Ok(behind)
        } else {
            self.write("] :");
            Ok(2)
        }
    }

    /// Writes an address in angle brackets or an HTML tag. Tags with attributes could load something,
    /// and comments could hide links from this scan, so both are made text by a blank.
    fn tag(&mut self, ahead: Ahead<'_>) -> Read {
        let inside = &ahead.text[1..];
        let Some(first) = inside.chars().next() else {
            ahead.wait_for_more()?;
            self.write("<");
            return Ok(1);
        };
        if !first.is_ascii_alphanumeric() {
            self.write(if matches!(first, '!' | '?') { "< " } else { "<" });
            return Ok(1);
        }
        let Some(length) = inside.find('>') else {
            ahead.wait_for_more()?;
            // A tag that is longer than the look-ahead may load something at its end.
            let breaks = ahead.end == End::Bound || loads(inside);
            self.write(if breaks { "< " } else { "<" });
            return Ok(1);
        };
        let inside = &inside[..length];
        if url(inside) == Some(inside) {
            if self.permits(inside, false) {
                self.write(&ahead.text[..length + 2])
            } else {
                self.write(&named_host(inside))
            }
            return Ok(length + 2);
        }
        self.write(if loads(inside) { "< " } else { "<" });
        Ok(1)
    }
}

/// Returns `true` if a tag with this text could load something, or change how the text after it
/// is read.
fn loads(inside: &str) -> bool {
    let name = inside
        .split(|character: char| !character.is_ascii_alphanumeric())
        .next();
    let is_raw = |name: &str| RAW_ELEMENTS.iter().any(|raw| raw.eq_ignore_ascii_case(name));
    inside.contains(['=', ':']) || name.is_some_and(is_raw)
}

impl<'a> Ahead<'a> {
    fn of(rest: &'a str, is_final: bool) -> Self {
        if rest.len() >= LOOK_AHEAD {
            let text = &rest[..rest.floor_char_boundary(LOOK_AHEAD)];
            return Self { text, end: End::Bound };
        }
        let end = if is_final { End::Final } else { End::Open };
        Self { text: rest, end }
    }

    /// Returns an error if more text may come.
    fn wait_for_more(self) -> Result<(), Incomplete> {
        match self.end {
            End::Open => Err(Incomplete),
            End::Final | End::Bound => Ok(()),
        }
    }

    /// Returns `true` if an address that ends at `at` is cut there: by the look-ahead, or by a square
    /// bracket.
    fn is_cut_at(self, at: usize) -> bool {
        match self.text.as_bytes().get(at) {
            Some(next) => b"[]".contains(next),
            None => self.end == End::Bound,
        }
    }

    /// Returns the plain address at the start, if there is one, and whether the look-ahead cuts it.
    fn url(self) -> Result<Option<(&'a str, bool)>, Incomplete> {
        let may_go_on = may_become_url(self.text);
        if may_go_on {
            self.wait_for_more()?;
        }
        Ok(url(self.text).map(|url| (url, may_go_on && self.end == End::Bound)))
    }

    /// Returns the address behind `](` or `]:`, and the position of its end. A square bracket cuts
    /// it, so that no two links look ahead over the same text.
    fn destination(self) -> Result<(&'a str, usize), Incomplete> {
        let body = &self.text[2..];
        let start = body.len() - body.trim_start().len();
        let text = &body[start..];
        let (start, length) = match text.strip_prefix('<') {
            Some(bracketed) => (start + 1, bracketed.find(['>', '\n']).unwrap_or(bracketed.len())),
            None => (
                start,
                balanced(text, |character| character.is_whitespace() || "[]".contains(character)),
            ),
        };
        let end = 2 + start + length;
        if end == self.text.len() {
            self.wait_for_more()?;
        }
        Ok((&body[start..start + length], end))
    }

    /// Returns the position of the end of a link whose address ends at `at`; `None` if it is not
    /// closed.
    fn end_of_link(self, at: usize) -> Result<Option<usize>, Incomplete> {
        let text = &self.text[at..];
        let mut rest = text.strip_prefix('>').unwrap_or(text).trim_start();
        if let Some(quote) = rest.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '(')) {
            let closing = if quote == '(' { ')' } else { quote };
            rest = match rest[1..].split_once(closing) {
                Some((_, behind)) => behind.trim_start(),
                None => "",
            };
        }
        if rest.is_empty() {
            self.wait_for_more()?;
        }
        Ok(rest.strip_prefix(')').map(|rest| self.text.len() - rest.len()))
    }
}
