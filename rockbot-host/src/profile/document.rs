//! Parsing of a Markdown document into sections.

/// A document of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProfileDocument {
    name: String,
    raw: String,
    preamble: Option<String>,
    sections: Vec<AgentProfileSection>,
}

/// A section of a document, under a heading of the second level.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentProfileSection {
    /// The heading without `## ` and surrounding whitespace.
    pub name: String,
    /// The text below the heading up to the next heading, unchanged.
    pub content: String,
}

impl AgentProfileDocument {
    /// Parses `text` as the document `name`.
    ///
    /// A section begins at each line that begins with `## `, except inside a fence of three or more
    /// backticks; an unclosed fence extends to the end. Other headings are text. A byte order mark at
    /// the beginning is dropped; everything else is kept, line ends of either kind too.
    pub fn parse(name: impl Into<String>, text: impl Into<String>) -> Self {
        let mut raw: String = text.into();
        if raw.starts_with('\u{feff}') {
            raw.drain(..'\u{feff}'.len_utf8());
        }
        let mut parts = split(&raw).into_iter();
        let preamble = parts.next().filter(|text| !text.trim().is_empty()).map(str::to_owned);
        let sections = parts.map(section).collect();
        Self {
            name: name.into(),
            raw,
            preamble,
            sections,
        }
    }

    /// Returns the name of the document: `soul`, `directives`, `memory-rules`, `style`, or a name
    /// that a program chose.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the whole text.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Returns the text before the first section; `None` if it is blank.
    pub fn preamble(&self) -> Option<&str> {
        self.preamble.as_deref()
    }

    /// Returns the sections in document order.
    pub fn sections(&self) -> &[AgentProfileSection] {
        &self.sections
    }
}

/// Splits `text` before each heading into the preamble and one piece per section. Concatenated,
/// they are `text`.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begin = 0;
    let mut end = 0;
    let mut fence = None;
    for line in text.split_inclusive('\n') {
        if fence.is_none() && line.starts_with("## ") {
            parts.push(&text[begin..end]);
            begin = end;
        }
        fence = fence_after(line, fence);
        end += line.len();
    }
    parts.push(&text[begin..]);
    parts
}

/// Returns the number of backticks of the fence that is open after `line`, given the fence that
/// was open before it. As in CommonMark, a fence is indented by up to three spaces, and is closed
/// by a line of at least as many backticks.
fn fence_after(line: &str, open: Option<usize>) -> Option<usize> {
    let text = line.trim_start_matches(' ');
    let rest = text.trim_start_matches('`');
    let indent = line.len() - text.len();
    let ticks = text.len() - rest.len();
    let is_fence = indent < 4 && ticks >= 3;
    match open {
        Some(open) => (!(is_fence && ticks >= open && rest.trim().is_empty())).then_some(open),
        None => (is_fence && !rest.contains('`')).then_some(ticks),
    }
}

/// Parses a piece that begins with a heading.
fn section(text: &str) -> AgentProfileSection {
    let (heading, content) = text.split_at(text.find('\n').map_or(text.len(), |end| end + 1));
    AgentProfileSection {
        name: heading.strip_prefix("## ").unwrap_or(heading).trim().to_owned(),
        content: content.to_owned(),
    }
}
