//! Guides: how to use a group of tools well, for the model to read when it needs them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A guide to a group of tools. Descriptions of tools stand in every request and are short; a guide is read on demand.
pub trait ToolGuide: fmt::Debug + Send + Sync + 'static {
    /// The name by which the model asks for it, such as `web`: 1 to 64 characters of `A-Z a-z 0-9 _ -`.
    fn name(&self) -> &str;

    /// What it is about, in one line.
    fn summary(&self) -> &str;

    /// The guide, in Markdown. Asked for each time that it is read, so it may say what holds now.
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

/// A guide whose text is known from the beginning.
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
    /// A guide of this text, often from `include_str!`.
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
