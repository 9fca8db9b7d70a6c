//! Classification of the lines of Markdown, as far as splitting needs it.

use memchr::memchr;

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::large_result) enum Line {
    /// A line of white space only, outside of a fence.
    Blank,
    /// A heading of level 1 to 3: one to three `#` in the first column and a blank.
    Heading(u8),
    /// The line that opens a code fence.
    FenceStart,
    /// A line inside a fence, or the line that closes it.
    Fenced,
    /// Anything else.
    Text,
}

/// A classifier of lines that tracks whether it is inside a code fence. An unclosed fence extends
/// to the end.
#[derive(Debug, Default)]
pub(in crate::large_result) struct Lines {
    fence: Option<Fence>,
    position: usize,
}

/// An open fence: the line that closes it consists of at least `length` of `marker`.
#[derive(Debug, Clone, Copy)]
struct Fence {
    marker: u8,
    length: usize,
}

impl Lines {
    /// Returns start, end and kind of the next line of `text`, its line end included.
    #[inline]
    pub(in crate::large_result) fn next(&mut self, text: &[u8]) -> Option<(usize, usize, Line)> {
        let start = self.position;
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let end = memchr(b'\n', rest).map_or(text.len(), |at| start + at + 1);
        self.position = end;
        Some((start, end, self.kind(&text[start..end])))
    }

    #[inline]
    fn kind(&mut self, line: &[u8]) -> Line {
        if let Some(fence) = self.fence {
            if fence.is_closed_by(line) {
                self.fence = None;
            }
            return Line::Fenced;
        }
        match line[0] {
            b'#' => heading_level(line).map_or(Line::Text, Line::Heading),
            b'`' | b'~' | b' ' | b'\t' | b'\r' | b'\n' | b'-' | b'*' | b'+' | b'0'..=b'9' => self.start(line),
            _ => Line::Text,
        }
    }

    /// Classifies a line that may be blank or open a fence.
    fn start(&mut self, line: &[u8]) -> Line {
        let line = after_list_marker(line.trim_ascii_start());
        match line.first() {
            None => Line::Blank,
            Some(b'`' | b'~') => {
                self.fence = Fence::opened_by(line);
                self.fence.map_or(Line::Text, |_| Line::FenceStart)
            }
            Some(_) => Line::Text,
        }
    }

    /// Returns `true` if a fence is open after the last line.
    pub(super) fn is_in_fence(&self) -> bool {
        self.fence.is_some()
    }
}

impl Fence {
    /// Returns the fence that a line opens which begins with a marker. The caller has removed
    /// indentation and list markers.
    fn opened_by(line: &[u8]) -> Option<Self> {
        let marker = line[0];
        let length = run(line, marker);
        // ```code``` on one line is no fence.
        let is_inline = marker == b'`' && line[length..].contains(&b'`');
        (length >= 3 && !is_inline).then_some(Self { marker, length })
    }

    #[inline]
    fn is_closed_by(self, line: &[u8]) -> bool {
        let may_close = line[0] == self.marker || line[0].is_ascii_whitespace();
        may_close && {
            let line = line.trim_ascii();
            line.len() >= self.length && run(line, self.marker) == line.len()
        }
    }
}

/// Returns the number of times that `byte` is repeated at the start.
fn run(line: &[u8], byte: u8) -> usize {
    line.iter().take_while(|first| **first == byte).count()
}

fn heading_level(line: &[u8]) -> Option<u8> {
    let level = run(&line[..line.len().min(4)], b'#');
    let is_heading = level <= 3 && line.get(level) == Some(&b' ');
    is_heading.then_some(level as u8)
}

/// Returns the line without the `-`, `*`, `+`, `1.` or `1)` of a list, because a fence may open
/// after it.
fn after_list_marker(line: &[u8]) -> &[u8] {
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match (digits, &line[digits..]) {
        (0, [b'-' | b'*' | b'+', b' ', rest @ ..]) | (1.., [b'.' | b')', b' ', rest @ ..]) => {
            let rest = rest.trim_ascii_start();
            // An item without a text is not a blank line.
            if rest.is_empty() { line } else { rest }
        }
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[Line]) {
        let mut lines = Lines::default();
        let found: Vec<_> = std::iter::from_fn(|| lines.next(text.as_bytes()).map(|(_, _, kind)| kind)).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    use Line::{Blank, FenceStart, Fenced, Heading, Text};

    #[test]
    fn headings_stand_in_the_first_column_and_have_a_blank() {
        check("# a\n## b\n### c\r\n", &[Heading(1), Heading(2), Heading(3)]);
        check("#### d\n#e\n # f\n#\n", &[Text, Text, Text, Text]);
    }

    #[test]
    fn nothing_is_a_heading_inside_a_fence() {
        check(
            "```sh\n# a\n\n```\n# b",
            &[FenceStart, Fenced, Fenced, Fenced, Heading(1)],
        );
        check(
            "~~~\n```\n# a\n~~~~ \n# b",
            &[FenceStart, Fenced, Fenced, Fenced, Heading(1)],
        );
        check(
            "````\n```\n# a\n````\n# b",
            &[FenceStart, Fenced, Fenced, Fenced, Heading(1)],
        );
    }

    #[test]
    fn fences_stand_in_lists_too() {
        check("- ```\n  # a\n  ```\n# b", &[FenceStart, Fenced, Fenced, Heading(1)]);
        check(
            "12. x\n    ~~~\n# a\n    ~~~\n# b",
            &[Text, FenceStart, Fenced, Fenced, Heading(1)],
        );
    }

    #[test]
    fn what_opens_no_fence() {
        check("```code``` here\n# a", &[Text, Heading(1)]);
        check("``\n~~\n- x\n1) y\n- \n", &[Text, Text, Text, Text, Text]);
        check(" \t\r\n\n", &[Blank, Blank]);
    }

    #[test]
    fn a_fence_that_is_never_closed_goes_to_the_end() {
        check("```\n# a\n\n# b", &[FenceStart, Fenced, Fenced, Fenced]);
    }
}
