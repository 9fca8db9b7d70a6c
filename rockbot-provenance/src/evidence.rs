//! The texts that a model has read, with their authors.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use memchr::memmem;

use crate::dates::{self, Date, Span};
use crate::index::TextIndex;

/// The author of a text, as far as it matters for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The user of the conversation.
    User,
    /// The host: its instructions, rules, trusted memories and the output of its own tools.
    Host,
    /// Any other author.
    Outside,
}

/// A text that the model has read.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    pub(crate) author: Author,
    pub(crate) name: Cow<'a, str>,
    pub(crate) text: Cow<'a, str>,
    index: Option<Arc<TextIndex>>,
}

impl<'a> Source<'a> {
    /// Creates a source. Questions to a person show its `name`, such as `get_webpage
    /// (example.com)`.
    pub fn new(author: Author, name: impl Into<Cow<'a, str>>, text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            author,
            name: name.into(),
            text: text.into(),
            index: None,
        }
    }

    /// Sets the index of the text, by which a search for a value that the text lacks ends at once.
    /// Default: none.
    #[must_use]
    pub fn with_index(mut self, index: Option<Arc<TextIndex>>) -> Self {
        self.index = index;
        self
    }

    /// Returns `false` if the value certainly does not stand in the text, whatever its case.
    pub(crate) fn may_have(&self, value: &str) -> bool {
        self.index.as_ref().is_none_or(|index| index.may_have(value))
    }

    /// Returns `true` if the value stands in the text as it is.
    pub(crate) fn has(&self, value: &str) -> bool {
        self.may_have(value) && memmem::find(self.text.as_bytes(), value.as_bytes()).is_some()
    }
}

/// All that a model has read before it made a call.
#[derive(Debug, Default)]
pub struct Evidence<'a> {
    pub(crate) user: Vec<Known<'a>>,
    pub(crate) host: Vec<Known<'a>>,
    pub(crate) outside: Vec<Source<'a>>,
}

/// A trusted text, prepared for the search.
#[derive(Debug)]
pub(crate) struct Known<'a> {
    pub(crate) raw: Cow<'a, str>,
    /// The text in lower case where it is ASCII, so that its offsets hold in `raw`.
    pub(crate) folded: String,
    /// The dates, and the places of dates and times; read when the first value asks for them.
    times: OnceCell<(Vec<Date>, Vec<Span>)>,
}

impl<'a> Known<'a> {
    fn new(raw: Cow<'a, str>) -> Self {
        Self {
            folded: raw.to_ascii_lowercase(),
            raw,
            times: OnceCell::new(),
        }
    }

    /// Returns the dates that the text names.
    pub(crate) fn dates(&self) -> &[Date] {
        &self.times().0
    }

    /// Returns `true` if the bytes from `start` to `end` are part of a date or a time, whose digits are no
    /// number.
    pub(crate) fn is_temporal(&self, start: usize, end: usize) -> bool {
        let places = &self.times().1;
        places.iter().any(|span| span.start < end && start < span.end)
    }

    fn times(&self) -> &(Vec<Date>, Vec<Span>) {
        self.times.get_or_init(|| dates::in_text(&self.folded))
    }
}

impl<'a> Evidence<'a> {
    /// Creates the evidence of `sources`.
    pub fn new(sources: Vec<Source<'a>>) -> Self {
        let mut evidence = Self::default();
        for source in sources {
            match source.author {
                Author::User => evidence.user.push(Known::new(source.text)),
                Author::Host => evidence.host.push(Known::new(source.text)),
                Author::Outside => evidence.outside.push(source),
            }
        }
        evidence
    }
}
