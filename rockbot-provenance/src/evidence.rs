//! The texts that a model has read, with their authors.

use std::borrow::Cow;

use crate::dates::{self, Date, Span};

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
}

impl<'a> Source<'a> {
    /// Creates a source. Questions to a person show its `name`, such as `get_webpage
    /// (example.com)`.
    pub fn new(author: Author, name: impl Into<Cow<'a, str>>, text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            author,
            name: name.into(),
            text: text.into(),
        }
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
    pub(crate) dates: Vec<Date>,
    /// The places of dates and times, whose digits are no numbers.
    pub(crate) temporal: Vec<Span>,
}

impl<'a> Known<'a> {
    fn new(raw: Cow<'a, str>) -> Self {
        let folded = raw.to_ascii_lowercase();
        let (dates, temporal) = dates::in_text(&folded);
        Self {
            raw,
            folded,
            dates,
            temporal,
        }
    }

    /// Returns `true` if the bytes from `start` to `end` are part of a date or a time.
    pub(crate) fn is_temporal(&self, start: usize, end: usize) -> bool {
        self.temporal.iter().any(|span| span.start < end && start < span.end)
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
