//! A service as a search knows it.

use crate::ToolName;
use crate::content::Provenance;

/// The kind of a service, which decides how a model uses the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ServiceKind {
    /// Another agent.
    Agent,
    /// An MCP server.
    McpServer,
    /// A tool of this agent.
    Tool,
    /// A guide to tools.
    Guide,
    /// A skill.
    Skill,
}

impl ServiceKind {
    /// Returns the name that models read: `a2a`, `mcp`, `tool`, `guide` or `skill`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "a2a",
            Self::McpServer => "mcp",
            Self::Tool => "tool",
            Self::Guide => "guide",
            Self::Skill => "skill",
        }
    }
}

/// A service: its description for a model, and the words that find it in a search.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownService {
    /// The kind.
    pub kind: ServiceKind,
    /// The name of the service, as a model uses it.
    pub id: String,
    /// The purpose, in a sentence.
    pub summary: String,
    /// The skills of an agent or the tools of a server, by name, the most important first.
    pub items: Vec<String>,
    /// Further words that find the service in a search: descriptions, tags, examples.
    pub words: String,
    /// The origin of the service's texts.
    pub provenance: Provenance,
    /// The tool, or the group of tools, that a model needs to use the service, if the tool is shown
    /// on demand.
    pub activates: Option<ToolName>,
}

impl KnownService {
    /// Creates a service of this host's own, without items and further words.
    pub fn new(kind: ServiceKind, id: impl Into<String>, summary: impl Into<String>) -> Self {
        Self {
            kind,
            id: id.into(),
            summary: summary.into(),
            items: Vec::new(),
            words: String::new(),
            provenance: Provenance::HOST,
            activates: None,
        }
    }

    /// Sets the skills of an agent or the tools of a server, the most important first. Default: none.
    #[must_use]
    pub fn with_items(mut self, items: Vec<String>) -> Self {
        self.items = items;
        self
    }

    /// Sets further words that find the service in a search. Default: none.
    #[must_use]
    pub fn with_words(mut self, words: impl Into<String>) -> Self {
        self.words = words.into();
        self
    }

    /// Sets the origin. Default: the host.
    #[must_use]
    pub fn with_provenance(mut self, provenance: Provenance) -> Self {
        self.provenance = provenance;
        self
    }

    /// Sets the tool, or the group of tools, that a model needs to use the service. Default: none.
    #[must_use]
    pub fn with_activates(mut self, name: impl Into<ToolName>) -> Self {
        self.activates = Some(name.into());
        self
    }

    /// Returns the text that a search reads: names, also with their parts as words, the summary, the
    /// further words.
    pub fn text(&self) -> String {
        let spaced = |name: &str| format!("{name} {}", name.replace(['_', '-', '.'], " "));
        let items: Vec<_> = self.items.iter().map(|item| spaced(item)).collect();
        [&spaced(&self.id), &self.summary, &items.join(" "), &self.words]
            .map(String::as_str)
            .join("\n")
    }
}
