//! Guides to groups of tools, which the model reads on demand.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A guide that explains to the model how to use a group of tools well.
///
/// Descriptions of tools stand in every request and must be short. A guide costs nothing until
/// the model asks for it, so it can explain an order of calls, give examples and name pitfalls. A
/// [`StaticGuide`] has a text that never changes.
pub trait ToolGuide: fmt::Debug + Send + Sync + 'static {
    /// Returns the name that the model asks for the guide with, such as `web`: 1 to 64 characters
    /// of `A-Z a-z 0-9 _ -`.
    fn name(&self) -> &str;

    /// Returns the topic of the guide, in one line.
    fn summary(&self) -> &str;

    /// Returns the guide in Markdown. It is called each time the model reads the guide, so the text
    /// may describe the present state.
    fn document(&self) -> Cow<'_, str>;
}

impl<G: ToolGuide + ?Sized> ToolGuide for Arc<G> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn summary(&self) -> &str {
        (**self).summary()
    }

    fn document(&self) -> Cow<'_, str> {
        (**self).document()
    }
}

/// A guide with a fixed text.
///
/// ```
/// use rockbot_core::tool::{StaticGuide, ToolGuide};
///
/// let guide = StaticGuide::new("web", "Searching and reading the web.", "# Web\n\nSearch first, then read.");
/// assert_eq!(guide.document(), "# Web\n\nSearch first, then read.");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticGuide {
    name: Cow<'static, str>,
    summary: Cow<'static, str>,
    document: Cow<'static, str>,
}

impl StaticGuide {
    /// Creates a guide with this name, one-line summary and text. The text often comes from
    /// `include_str!`.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        summary: impl Into<Cow<'static, str>>,
        document: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            name: name.into(),
            summary: summary.into(),
            document: document.into(),
        }
    }
}

impl ToolGuide for StaticGuide {
    fn name(&self) -> &str {
        &self.name
    }

    fn summary(&self) -> &str {
        &self.summary
    }

    fn document(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.document)
    }
}
