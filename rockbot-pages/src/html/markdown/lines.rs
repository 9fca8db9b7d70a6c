//! Blocks with the prefixes of lists and quotes in front of their lines.

/// The prefix of the lines inside of a list item or a quote.
#[derive(Debug)]
pub(super) enum Prefix {
    Quote,
    /// The marker, until it is written, and its width.
    Item {
        marker: Option<String>,
        width: usize,
    },
}

impl Prefix {
    pub(super) fn item(marker: &str) -> Self {
        Self::Item {
            marker: Some(marker.to_owned()),
            width: marker.len(),
        }
    }
}

/// The written blocks.
#[derive(Debug)]
pub(super) struct Lines {
    out: String,
    prefixes: Vec<Prefix>,
    /// Maximum size, in bytes. A block that goes beyond it is the last block.
    max: usize,
}

/// Maximum number of prefixes that are written. Deeper lists are flat.
const MAX_PREFIXES: usize = 24;

impl Lines {
    pub(super) fn new(max: usize) -> Self {
        Self {
            out: String::new(),
            prefixes: Vec::new(),
            max,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn push(&mut self, prefix: Prefix) {
        self.prefixes.push(prefix);
    }

    pub(super) fn pop(&mut self) {
        self.prefixes.pop();
    }

    /// Writes a block of one or more lines.
    pub(super) fn block(&mut self, text: &str) {
        self.separate();
        for (number, line) in text.split('\n').enumerate() {
            if self.out.len() > self.max {
                return;
            }
            if number > 0 {
                self.out.push('\n');
            }
            let start = self.out.len();
            self.prefix();
            self.out.push_str(line);
            if line.is_empty() {
                let kept = self.out[start..].trim_end().len();
                self.out.truncate(start + kept);
            }
        }
    }

    /// Returns the text, with a line end behind the last line, and whether its end is missing.
    pub(super) fn finish(mut self) -> (String, bool) {
        let is_cut = self.out.len() > self.max;
        self.out.truncate(self.out.floor_char_boundary(self.max));
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        (self.out, is_cut)
    }

    /// Writes the blank line between blocks. An item follows its list without one.
    fn separate(&mut self) {
        if self.out.is_empty() {
            return;
        }
        self.out.push('\n');
        let is_item = |prefix: &Prefix| matches!(prefix, Prefix::Item { marker: Some(_), .. });
        let first = self.prefixes.iter().position(is_item);
        let is_inside = |first: usize| {
            self.prefixes[..first]
                .iter()
                .any(|prefix| matches!(prefix, Prefix::Item { .. }))
        };
        let is_in_list = first.is_some_and(|first| is_inside(first) || self.is_after_item());
        if !is_in_list {
            let start = self.out.len();
            self.prefix_of(first.unwrap_or(self.prefixes.len()));
            let kept = self.out[start..].trim_end().len();
            self.out.truncate(start + kept);
            self.out.push('\n');
        }
    }

    /// Returns `true` if the line before belongs to an item, so that the next item needs no blank
    /// line.
    fn is_after_item(&self) -> bool {
        let line = self.out.trim_end_matches('\n').rsplit('\n').next().unwrap_or_default();
        let line = line.trim_start_matches("> ");
        let text = line.trim_start_matches(' ');
        let number = text.split(". ").next().unwrap_or_default();
        let is_number = !number.is_empty() && number.len() < 10 && number.bytes().all(|b| b.is_ascii_digit());
        text.len() < line.len() || text.starts_with("- ") || text.starts_with(": ") || is_number
    }

    fn prefix(&mut self) {
        self.prefix_of(self.prefixes.len());
    }

    fn prefix_of(&mut self, count: usize) {
        for prefix in self.prefixes.iter_mut().take(count.min(MAX_PREFIXES)) {
            match prefix {
                Prefix::Quote => self.out.push_str("> "),
                Prefix::Item { marker, width } => match marker.take() {
                    Some(marker) => self.out.push_str(&marker),
                    None => self.out.extend(std::iter::repeat_n(' ', *width)),
                },
            }
        }
    }
}
