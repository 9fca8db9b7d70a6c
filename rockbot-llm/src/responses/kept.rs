//! Kept items: the reasoning of an answer in the API's own form, and the ids of the items that
//! followed it.
//!
//! Since the server stores nothing, it gives the reasoning encrypted, and it wants it back in
//! front of the message or call that followed, under the same ids. Both travel in
//! [`Reasoning::details`] as a JSON list in the order of the output.

use std::borrow::Cow;
use std::sync::Arc;

use rockbot_core::chat::{ChatMessage, Reasoning};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// An item of an answer: reasoning, or the head of the item behind it.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum KeptItem<'a> {
    /// Reasoning, with the members that the API takes back.
    Reasoning {
        #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
        id: Cow<'a, str>,
        #[serde(default)]
        summary: Vec<serde_json::Value>,
        /// Plain reasoning, which servers of open models send.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Vec<serde_json::Value>>,
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<Cow<'a, str>>,
    },
    /// The message with the text of the answer.
    Message {
        #[serde(borrow, default)]
        id: Cow<'a, str>,
    },
    /// A tool call.
    FunctionCall {
        #[serde(borrow, default)]
        id: Cow<'a, str>,
    },
}

/// The items of one answer while it arrives.
#[derive(Default)]
pub(super) struct KeptItems {
    items: Vec<KeptItem<'static>>,
}

impl KeptItems {
    /// Adds a whole item of reasoning. An item that the API would not find again is left out: the
    /// server stores nothing.
    pub(super) fn push_reasoning(&mut self, raw: &RawValue) {
        let Ok(KeptItem::Reasoning {
            id,
            summary,
            content,
            encrypted_content,
        }) = serde_json::from_str(raw.get())
        else {
            return;
        };
        let content = content.filter(|parts| !parts.is_empty());
        let encrypted_content = encrypted_content.filter(|text| !text.is_empty());
        if content.is_some() || encrypted_content.is_some() {
            self.items.push(KeptItem::Reasoning {
                id: Cow::Owned(id.into_owned()),
                summary,
                content,
                encrypted_content: encrypted_content.map(|text| Cow::Owned(text.into_owned())),
            });
        }
    }

    /// Adds the head of a message.
    pub(super) fn push_message(&mut self, id: &str) {
        // The text of all messages is sent back as one.
        if !self.items.iter().any(|item| matches!(item, KeptItem::Message { .. })) {
            let id = Cow::Owned(id.to_owned());
            self.items.push(KeptItem::Message { id });
        }
    }

    /// Adds the head of a tool call.
    pub(super) fn push_call(&mut self, id: &str) {
        let id = Cow::Owned(id.to_owned());
        self.items.push(KeptItem::FunctionCall { id });
    }

    /// Returns the reasoning with the thoughts `text`, if there was any.
    pub(super) fn finish(self, text: String) -> Option<Reasoning> {
        let has_reasoning = |item: &KeptItem<'_>| matches!(item, KeptItem::Reasoning { .. });
        let details = self.items.iter().any(has_reasoning).then_some(&self.items);
        let details = details.and_then(|items| serde_json::value::to_raw_value(items).ok());
        (!text.is_empty() || details.is_some()).then(|| Reasoning::new(text).with_details(details.map(Arc::from)))
    }
}

/// Returns the items of `message` as the API gave them, if it did and the message still has the
/// item behind the reasoning: the API refuses reasoning without that item.
pub(super) fn kept_items(message: &ChatMessage, has_text: bool) -> Option<Vec<KeptItem<'_>>> {
    let details = message.reasoning.as_ref()?.details.as_ref()?;
    let items: Vec<KeptItem<'_>> = serde_json::from_str(details.get()).ok()?;
    let count = |is: fn(&KeptItem<'_>) -> bool| items.iter().filter(|item| is(item)).count();
    let messages = count(|item| matches!(item, KeptItem::Message { .. }));
    let calls = count(|item| matches!(item, KeptItem::FunctionCall { .. }));
    let is_followed = !matches!(items.last(), None | Some(KeptItem::Reasoning { .. }));
    let is_whole = messages == usize::from(has_text) && calls == message.tool_calls.len();
    (is_followed && is_whole).then_some(items)
}
