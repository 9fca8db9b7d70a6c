//! The text of a block, with links and emphasis.

use std::borrow::Cow;

/// A style of a part of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    /// A link to this target; without one it is only text.
    Link(Option<String>),
    Strong,
    Emphasis,
    Deleted,
    Code,
}

/// The text of the block so far.
#[derive(Debug, Default)]
pub(super) struct Inline {
    text: String,
    /// The open styles, each with the position of its text.
    open: Vec<(Mark, usize)>,
    /// White space was read that is not written yet.
    is_spaced: bool,
}

impl Inline {
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Appends text of the page; white space is one space.
    pub(super) fn text(&mut self, text: &str) {
        let is_code = self.is_code();
        let mut rest = text;
        while !rest.is_empty() {
            let word_at = length_until(rest, |at| !starts_with_space(at));
            self.is_spaced |= word_at > 0;
            rest = &rest[word_at..];
            let end = length_until(rest, starts_with_space);
            if end > 0 {
                self.space();
                if is_code {
                    self.text.push_str(&rest[..end])
                } else {
                    push_escaped(&mut self.text, &rest[..end])
                }
            }
            rest = &rest[end..];
        }
    }

    /// Ends the line, not the block.
    pub(super) fn line_break(&mut self) {
        self.is_spaced = false;
        let kept = self.text.trim_end_matches(' ').len();
        // A style that has just begun begins behind the break.
        let is_empty = self.open.last().map_or(kept == 0, |(_, start)| kept <= *start);
        if !is_empty {
            self.text.truncate(kept);
            self.text.push(if self.is_code() { ' ' } else { '\n' });
        }
    }

    /// Appends an image.
    pub(super) fn image(&mut self, alt: &str, source: &str) {
        self.space();
        self.text.push_str("![");
        self.text.extend(alt.chars().filter(|c| !matches!(c, '[' | ']')));
        self.text.push_str("](");
        self.text.push_str(source);
        self.text.push(')');
    }

    /// Begins a style.
    pub(super) fn open(&mut self, mark: Mark) {
        self.space();
        self.open.push((mark, self.text.len()));
    }

    /// Ends the style that began last.
    pub(super) fn close(&mut self) {
        if let Some((mark, start)) = self.open.pop() {
            self.wrap(&mark, start);
        }
    }

    /// Returns the text, and begins a new block with the same open styles. A link is written once.
    pub(super) fn take(&mut self) -> String {
        let mut open = std::mem::take(&mut self.open);
        for (mark, start) in open.iter_mut().rev() {
            let is_written = self.wrap(mark, *start);
            *start = 0;
            if is_written && matches!(mark, Mark::Link(_)) {
                *mark = Mark::Link(None);
            }
        }
        self.open = open;
        self.is_spaced = false;
        let text = std::mem::take(&mut self.text);
        match text.trim_matches([' ', '\n']) {
            trimmed if trimmed.len() == text.len() => text,
            trimmed => trimmed.to_owned(),
        }
    }

    fn is_code(&self) -> bool {
        self.open.iter().any(|(mark, _)| *mark == Mark::Code)
    }

    /// Writes the white space that was read, unless the line begins here.
    fn space(&mut self) {
        if std::mem::take(&mut self.is_spaced) && !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }

    /// Puts the signs of a style around the text from `start`. Returns `false` if there is none.
    fn wrap(&mut self, mark: &Mark, start: usize) -> bool {
        let start = start.min(self.text.len());
        let lead = self.text[start..].len() - self.text[start..].trim_start_matches([' ', '\n']).len();
        let start = start + lead;
        let end = self.text.trim_end_matches([' ', '\n']).len();
        if start >= end {
            return false;
        }
        let inner = &self.text[start..end];
        let (before, after): (Cow<'_, str>, Cow<'_, str>) = match mark {
            Mark::Link(None) => return true,
            Mark::Link(Some(target)) => ("[".into(), ["](", target, ")"].concat().into()),
            Mark::Strong if !is_marked(inner, "**") => ("**".into(), "**".into()),
            Mark::Emphasis if !is_marked(inner, "*") => ("*".into(), "*".into()),
            Mark::Deleted => ("~~".into(), "~~".into()),
            Mark::Code if !self.is_code() => code_signs(inner),
            Mark::Strong | Mark::Emphasis | Mark::Code => return true,
        };
        // Emphasis does not span lines in lists and cells.
        self.text.insert_str(end, &after);
        self.text.insert_str(start, &before);
        true
    }
}

/// Returns the signs around inline code: more backticks than it contains in a row.
fn code_signs(inner: &str) -> (Cow<'static, str>, Cow<'static, str>) {
    if !inner.contains('`') {
        return ("`".into(), "`".into());
    }
    let ticks = "`".repeat(longest_run(inner) + 1);
    (format!("{ticks} ").into(), format!(" {ticks}").into())
}

/// Returns the length of the longest run of backticks.
pub(super) fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

fn is_marked(text: &str, sign: &str) -> bool {
    text.len() >= 2 * sign.len() && text.starts_with(sign) && text.ends_with(sign)
}

/// Returns `true` if white space of a page is next. A space that does not break is text like any
/// other, but for its width.
fn starts_with_space(bytes: &[u8]) -> bool {
    match bytes {
        [0xC2, 0xA0, ..] => true,
        [first, ..] => first.is_ascii_whitespace(),
        [] => false,
    }
}

/// Returns the length of `text` before the first character that `is_end` accepts.
fn length_until(text: &str, is_end: impl Fn(&[u8]) -> bool) -> usize {
    let bytes = text.as_bytes();
    // Bytes inside of a character are neither the beginning of white space nor the end of a word.
    (0..bytes.len())
        .find(|at| text.is_char_boundary(*at) && is_end(&bytes[*at..]))
        .unwrap_or(bytes.len())
}

/// Appends a word. Signs that would begin a style or code are escaped; the rest reads better as
/// it is.
fn push_escaped(text: &mut String, word: &str) {
    let mut rest = word;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'*' | b'`' | b'\0')) {
        text.push_str(&rest[..at]);
        if rest.as_bytes()[at] != b'\0' {
            text.extend(['\\', char::from(rest.as_bytes()[at])]);
        }
        rest = &rest[at + 1..];
    }
    text.push_str(rest);
}

/// Escapes the beginning of a paragraph that Markdown would take for a heading, a list or a quote.
pub(super) fn escaped_start(text: &str) -> Cow<'_, str> {
    let marker = text.split(' ').next().unwrap_or_default();
    let digits = marker.trim_end_matches(['.', ')']);
    let is_number = digits.len() + 1 == marker.len() && digits.len() < 10 && digits.bytes().all(|b| b.is_ascii_digit());
    if is_number && !digits.is_empty() && marker.len() < text.len() {
        return format!("{digits}\\{}", &text[digits.len()..]).into();
    }
    let is_marker =
        matches!(marker, "-" | "+" | "#" | "##" | "###" | "####" | "#####" | "######") || marker.starts_with('>');
    if is_marker || text.starts_with("---") || text.starts_with("~~~") {
        format!("\\{text}").into()
    } else {
        text.into()
    }
}
