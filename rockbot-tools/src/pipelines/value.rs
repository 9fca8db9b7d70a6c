//! Values of a program as texts: JSON, except that a text stands for itself.

use rockbot_core::chat::OutputSchema;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Parses a text as JSON of a type. If the type is a text, takes the text as it is.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    let parsed = serde_json::from_str(text);
    parsed.or_else(|error| serde_json::from_value(Value::from(text)).map_err(|_| error))
}

/// Returns a value as its text.
pub(super) fn text(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(match serde_json::to_value(value)? {
        Value::String(text) => text,
        value => value.to_string(),
    })
}

// Some providers accept only schemas of objects.
#[derive(Deserialize, JsonSchema)]
struct Wrapped<T> {
    /// The answer.
    value: T,
}

/// The form of a model's answer.
pub(super) struct Form {
    /// Schema of the answer; `None` for a text.
    pub(super) schema: Option<OutputSchema>,
    is_wrapped: bool,
}

impl Form {
    /// Returns the form of a type.
    pub(super) fn of<T: JsonSchema>() -> Self {
        let schema = OutputSchema::of::<T>();
        let is_text = schema.schema["type"] == "string" && schema.schema.get("enum").is_none();
        let is_wrapped = !is_text && !schema.is_object();
        let schema = if is_wrapped {
            OutputSchema::of::<Wrapped<T>>()
        } else {
            schema
        };
        Self {
            schema: (!is_text).then_some(schema),
            is_wrapped,
        }
    }

    /// Reads an answer of this form.
    pub(super) fn read<T: DeserializeOwned>(&self, text: &str) -> serde_json::Result<T> {
        if self.is_wrapped {
            serde_json::from_str(text).map(|Wrapped { value }| value)
        } else {
            parse(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_itself_and_another_value_is_json() {
        assert_eq!(parse::<String>("a b").unwrap(), "a b");
        assert_eq!(parse::<String>("7").unwrap(), "7");
        assert_eq!(parse::<u32>("7").unwrap(), 7);
        assert_eq!(parse::<Vec<u32>>("[7]").unwrap(), [7]);
        assert!(parse::<u32>("seven").is_err());
        assert_eq!(
            (text(&"a").unwrap(), text(&[7]).unwrap()),
            ("a".to_owned(), "[7]".to_owned())
        );
    }

    #[test]
    fn an_answer_is_wrapped_unless_it_is_a_text_or_an_object() {
        #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
        struct Choice {
            name: String,
        }
        let of_text = Form::of::<String>();
        assert!(of_text.schema.is_none());
        assert_eq!(of_text.read::<String>("{}").unwrap(), "{}");
        let of_object = Form::of::<Choice>();
        let choice = of_object.read::<Choice>(r#"{"name": "a"}"#).unwrap();
        assert_eq!(
            (of_object.schema.unwrap().name, choice.name),
            ("Choice".to_owned(), "a".to_owned())
        );
        let of_number = Form::of::<u32>();
        assert!(of_number.schema.as_ref().unwrap().is_object());
        assert_eq!(of_number.read::<u32>(r#"{"value": 3}"#).unwrap(), 3);
    }
}
