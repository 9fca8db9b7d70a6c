//! The answer as the Responses API writes it. Unknown members, items and events are skipped.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http::WireText;

/// A whole answer, or its state at an event of a stream.
#[derive(Deserialize)]
pub(super) struct WireResponse<'a> {
    #[serde(default, borrow)]
    pub(super) id: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) model: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) status: Option<WireText<'a>>,
    // Raw, because reasoning is kept byte for byte.
    #[serde(default, borrow)]
    pub(super) output: Option<Vec<&'a RawValue>>,
    #[serde(default, borrow)]
    pub(super) incomplete_details: Option<WireIncomplete<'a>>,
    #[serde(default, borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// The reason why an answer is incomplete.
#[derive(Deserialize)]
pub(super) struct WireIncomplete<'a> {
    #[serde(default, borrow)]
    pub(super) reason: Option<WireText<'a>>,
}

/// The type of an item of the output.
#[derive(Deserialize)]
pub(super) struct WireHead<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: WireText<'a>,
}

/// An item of the output, or its beginning, of a type that this client asks for.
#[derive(Deserialize)]
pub(super) struct WireItem<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: WireText<'a>,
    #[serde(default, borrow)]
    pub(super) id: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) call_id: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) name: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) arguments: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) content: Option<Vec<WirePart<'a>>>,
    #[serde(default, borrow)]
    pub(super) summary: Option<Vec<WirePart<'a>>>,
}

/// A part of a message or of reasoning.
#[derive(Deserialize)]
pub(super) struct WirePart<'a> {
    #[serde(default, borrow)]
    text: Option<WireText<'a>>,
    #[serde(default, borrow)]
    refusal: Option<WireText<'a>>,
}

impl WirePart<'_> {
    /// Returns the text, or the words of the model's refusal.
    pub(super) fn words(&self) -> &str {
        match text(self.text.as_ref()) {
            "" => text(self.refusal.as_ref()),
            words => words,
        }
    }
}

/// An event of a streamed answer, with the members of all kinds of events.
#[derive(Deserialize)]
pub(super) struct WireEvent<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: WireText<'a>,
    #[serde(default)]
    pub(super) output_index: u64,
    #[serde(default, borrow)]
    pub(super) delta: Option<WireText<'a>>,
    #[serde(default, borrow)]
    pub(super) item: Option<&'a RawValue>,
    // Boxed, since it is large and only few events have it.
    #[serde(default, borrow)]
    pub(super) response: Option<Box<WireResponse<'a>>>,
}

/// Returns the text, or an empty one if there is none.
pub(super) fn text<'t>(text: Option<&'t WireText<'_>>) -> &'t str {
    text.map_or("", |text| &text.0)
}
