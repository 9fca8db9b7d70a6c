//! Faults of answers.

use rockbot_core::chat::ChatErrorKind;

/// A fault of an answer, before the message names the server that sent it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The server reports an error where the answer should be; this is its body.
    InBand(Vec<u8>),
    /// The answer is a page for people: this is no model server, or the path is wrong.
    WebPage,
    /// The answer is not a chat completion; the reason.
    Malformed(String),
    /// The answer broke off; the place.
    Cut(&'static str),
    /// The answer is longer than a limit; the part that is too long, and the limit.
    TooLong(&'static str, usize),
    /// The provider's content filter left nothing of it.
    Filtered,
}

impl Fault {
    /// Returns the kind of error that this fault is. The server's own errors are classified by their
    /// body instead.
    pub(crate) fn kind(&self) -> ChatErrorKind {
        match self {
            Self::InBand(_) => ChatErrorKind::Overloaded,
            Self::WebPage => ChatErrorKind::NotFound,
            Self::Malformed(_) | Self::TooLong(..) => ChatErrorKind::InvalidResponse,
            Self::Cut(_) => ChatErrorKind::CutStream,
            Self::Filtered => ChatErrorKind::ContentFiltered,
        }
    }
}
