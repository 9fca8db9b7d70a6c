//! A Markdown document and its sections.

/// One document of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProfileDocument {
    name: String,
    raw: String,
    preamble: Option<String>,
    sections: Vec<AgentProfileSection>,
}

/// A part of a document, under a heading of the second level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProfileSection {
    /// The heading, without its `## ` and the blanks around it.
    pub name: String,
    /// What stands below the heading up to the next one, exactly as it stands.
    pub content: String,
}

impl AgentProfileDocument {
    /// Reads `text` as the document `name`.
    ///
    /// A section begins at each line that begins with `## `, except inside a fence of three or more backticks; a
    /// fence that is never closed goes on to the end. Other headings are text. A byte order mark at the beginning
    /// is dropped; everything else is kept, line ends of either kind too.
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

    /// What the document is: `soul`, `directives`, `memory-rules` or `style`, or what its author calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// What stands before the first section; `None` when that is blank.
    pub fn preamble(&self) -> Option<&str> {
        self.preamble.as_deref()
    }

    /// The sections, in their order.
    pub fn sections(&self) -> &[AgentProfileSection] {
        &self.sections
    }
}

/// Cuts `text` before each heading: what comes before the first one, then a piece for each. Together they are `text`.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut end) = (Vec::new(), 0, 0);
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

/// How many backticks the fence has that is open after `line`, when `open` was open before it. As in CommonMark, a
/// fence stands up to three blanks to the right, and as many backticks or more alone on a line close it.
fn fence_after(line: &str, open: Option<usize>) -> Option<usize> {
    let text = line.trim_start_matches(' ');
    let rest = text.trim_start_matches('`');
    let (indent, ticks) = (line.len() - text.len(), text.len() - rest.len());
    let is_fence = indent < 4 && ticks >= 3;
    match open {
        Some(open) => (!(is_fence && ticks >= open && rest.trim().is_empty())).then_some(open),
        None => (is_fence && !rest.contains('`')).then_some(ticks),
    }
}

/// A piece that begins with a heading.
fn section(text: &str) -> AgentProfileSection {
    let (heading, content) = text.split_at(text.find('\n').map_or(text.len(), |end| end + 1));
    AgentProfileSection {
        name: heading.strip_prefix("## ").unwrap_or(heading).trim().to_owned(),
        content: content.to_owned(),
    }
}
