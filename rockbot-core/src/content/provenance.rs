//! The origin of a part of content.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::trust::{Label, Trust};

/// The origin of a text or medium, and the trust in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Provenance {
    /// The author, such as `user`, `host` or `tool:web_browse`; several sources are separated by a
    /// comma and a space. Empty if it is not known.
    pub source: Cow<'static, str>,
    /// The trust in the content.
    pub trust: Trust,
}

impl Provenance {
    /// Written by the operator of this host.
    pub const HOST: Self = Self::fixed("host", Trust::Host);
    /// Written by the user of the conversation.
    pub const USER: Self = Self::fixed("user", Trust::User);
    /// Written by a model.
    pub const MODEL: Self = Self::fixed("model", Trust::Untrusted);
    /// Returned by a tool.
    pub const TOOL: Self = Self::fixed("tool", Trust::Untrusted);
    /// Said by a tool whose [output is its own](crate::tool::ToolHints::own_output).
    pub const OWN_TOOL: Self = Self::fixed("tool", Trust::Host);
    /// Not attributed yet, and not trusted: the message that takes the content sets it. The default.
    pub const UNKNOWN: Self = Self::fixed("", Trust::Untrusted);

    const fn fixed(source: &'static str, trust: Trust) -> Self {
        Self {
            source: Cow::Borrowed(source),
            trust,
        }
    }

    /// Creates the provenance of content by `source`.
    ///
    /// ```
    /// # use rockbot_core::chat::Provenance;
    /// # use rockbot_core::context::Trust;
    /// assert_eq!(Provenance::new("user", Trust::User), Provenance::USER);
    /// ```
    pub fn new(source: impl Into<Cow<'static, str>>, trust: Trust) -> Self {
        Self {
            source: source.into(),
            trust,
        }
    }

    /// Returns `true` if the author is not known.
    pub fn is_unknown(&self) -> bool {
        self.source.is_empty()
    }

    /// Creates the provenance of a text with this label by `author`: a text of untrusted sources
    /// names the sources instead.
    pub fn labelled(author: &'static str, label: &Label) -> Self {
        match label.sources() {
            [] => Self::new(author, label.trust()),
            _ => Self::new(label.to_string(), label.trust()),
        }
    }

    /// Creates the provenance of a message from a sender of this trust.
    pub fn of_sender(trust: Trust) -> Self {
        match trust {
            Trust::Host => Self::HOST,
            trust => Self::new("user", trust),
        }
    }

    /// Returns the label of a text of this provenance.
    pub fn label(&self) -> Label {
        match self.trust {
            Trust::Untrusted => Label::untrusted(&self.source),
            trust => Label::of(trust),
        }
    }

    /// Takes the place of an unknown provenance, and limits the trust of a known one.
    pub(super) fn attribute(&mut self, place: Self) {
        if self.is_unknown() {
            *self = place
        } else {
            self.trust = self.trust.min(place.trust)
        }
    }
}

impl Default for Provenance {
    fn default() -> Self {
        Self::UNKNOWN
    }
}
