//! [`ReasoningForm`]: the form of the details of reasoning, by the types of their entries.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::WireText;

/// The form of [`Reasoning::details`](rockbot_core::chat::Reasoning::details). A conversation may
/// change its provider between two calls, so each dialect sends only details of its own form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReasoningForm {
    /// `reasoning_details` of chat completions, or a form that no dialect knows.
    Chat,
    /// Items of the Responses API.
    Items,
    /// Thinking blocks of Anthropic's Messages API.
    Thinking,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<WireText<'a>>,
}

impl ReasoningForm {
    /// Returns the form of `details`.
    pub(crate) fn of(details: &RawValue) -> Self {
        let heads: Vec<Head<'_>> = serde_json::from_str(details.get()).unwrap_or_default();
        let kinds = heads.iter().filter_map(|head| head.kind.as_ref());
        let form = kinds.map(|kind| match &*kind.0 {
            "thinking" | "redacted_thinking" => Self::Thinking,
            "reasoning" | "message" | "function_call" => Self::Items,
            _ => Self::Chat,
        });
        form.into_iter().find(|form| *form != Self::Chat).unwrap_or(Self::Chat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_types_of_the_entries_tell_the_form() {
        let check = |details: &str, expected| {
            let raw = RawValue::from_string(details.to_owned()).unwrap();
            assert_eq!(ReasoningForm::of(&raw), expected, "{details}");
        };
        let thinking = r#"[{"type":"thinking","thinking":"a","signature":"s"}]"#;
        check(thinking, ReasoningForm::Thinking);
        check(r#"[{"type":"redacted_thinking","data":"x"}]"#, ReasoningForm::Thinking);
        check(
            r#"[{"type":"reasoning","id":"rs_1"},{"type":"message"}]"#,
            ReasoningForm::Items,
        );
        check(r#"[{"type":"reasoning.text","text":"a"}]"#, ReasoningForm::Chat);
        check("{}", ReasoningForm::Chat);
    }
}
