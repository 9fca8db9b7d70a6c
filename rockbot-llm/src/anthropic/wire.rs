//! The answer as the Messages API writes it. Unknown members, blocks and events are skipped.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http::WireText;

/// A whole answer, or the beginning of a streamed one.
#[derive(Deserialize)]
pub(super) struct WireAnswer<'a> {
    #[serde(default, borrow)]
    pub(super) id: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) model: Option<WireText<'a>>,
    // Raw, because thinking blocks are kept byte for byte.
    #[serde(default, borrow)]
    pub(super) content: Option<Vec<&'a RawValue>>,
    #[serde(default, borrow)]
    pub(super) stop_reason: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// A block of content, or its beginning.
#[derive(Deserialize)]
pub(super) struct WireBlock<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: WireText<'a>,
    #[serde(default, borrow)]
    pub(super) text: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) thinking: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) id: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) name: Option<WireText<'a>>,
    #[serde(default, borrow)]
    input: Option<&'a RawValue>,
}

impl<'a> WireBlock<'a> {
    /// Returns the arguments of a tool call as JSON text: empty at the beginning of a streamed call.
    /// Servers that resemble the API send a text that holds them.
    pub(super) fn arguments(&self) -> Cow<'a, str> {
        match self.input.map(RawValue::get) {
            None | Some("{}" | "null") => Cow::Borrowed(""),
            Some(input) if input.starts_with('"') => {
                let text = serde_json::from_str::<WireText<'a>>(input);
                text.map_or(Cow::Borrowed(input), |text| text.0)
            }
            Some(input) => Cow::Borrowed(input),
        }
    }
}

/// An event of a streamed answer, with the members of all kinds of events.
#[derive(Deserialize)]
pub(super) struct WireEvent<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: WireText<'a>,
    #[serde(default)]
    pub(super) index: u64,
    // Boxed, since it is large and only one event has it.
    #[serde(default, borrow)]
    pub(super) message: Option<Box<WireAnswer<'a>>>,
    #[serde(default, borrow)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub(super) delta: Option<WireDelta<'a>>,
    #[serde(default, borrow)]
    pub(super) usage: Option<&'a RawValue>,
}

/// More of a block, or of the answer itself.
#[derive(Deserialize)]
pub(super) struct WireDelta<'a> {
    #[serde(default, borrow, rename = "type")]
    pub(super) kind: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) text: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) thinking: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) signature: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) partial_json: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) stop_reason: Option<WireText<'a>>,
}

/// Returns the text, or an empty one if there is none.
pub(super) fn text<'t>(text: Option<&'t WireText<'_>>) -> &'t str {
    text.map_or("", |text| &text.0)
}
