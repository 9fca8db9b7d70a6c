//! Fences of Markdown.

/// An open code fence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    /// Returns the fence that a line opens, and its info string.
    pub(super) fn opened_by(line: &str) -> Option<(Self, &str)> {
        let line = line.trim_start_matches([' ', '\t']);
        let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = line.trim_start_matches(mark);
        let length = line.len() - info.len();
        (length >= 3 && !info.contains(mark)).then(|| (Self { mark, length }, info.trim()))
    }

    /// Returns `true` if a line closes the fence.
    pub(super) fn is_closed_by(self, line: &str) -> bool {
        let line = line.trim_start_matches([' ', '\t']).trim_end();
        line.len() >= self.length && line.chars().all(|char| char == self.mark)
    }

    /// Returns the end of its content, and the start of the line after it. An unclosed fence extends
    /// to the end.
    pub(super) fn end(self, text: &str, content: usize) -> (usize, usize) {
        let mut at = content;
        for line in text[content..].split_inclusive('\n') {
            let next = at + line.len();
            if self.is_closed_by(line) {
                return (at, next);
            }
            at = next;
        }
        (text.len(), text.len())
    }
}
