//! The forms of elicitations: flat lists of fields.

use rmcp::model::ElicitationSchema;
use rockbot_core::support::{defused, one_line};
use rockbot_core::tool::ArgumentSchema;
use serde_json::{Map, Value};

/// Maximum number of fields.
const MAX_FIELDS: usize = 32;

/// Maximum number of choices of a field.
const MAX_CHOICES: usize = 200;

/// Maximum length of a shown text, in bytes.
pub(super) const MAX_TEXT: usize = 2_000;

/// Words in the name or the label of a field that asks for something secret. The protocol forbids
/// such forms.
const SECRETS: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "credential",
    "privatekey",
    "cvv",
];

/// A form that a server asks the user to fill in.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ElicitationForm {
    /// Fields, in the order of the server.
    pub fields: Vec<ElicitationField>,
    schema: Value,
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ElicitationField {
    /// Name of the value in the answer.
    pub name: String,
    /// Text for the user, on one line.
    pub label: String,
    /// Kind of the value.
    pub kind: ElicitationKind,
    /// `true` if an answer must have a value.
    pub is_required: bool,
    /// Value that the server proposes.
    pub default: Option<Value>,
}

/// The kind of a field's value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElicitationKind {
    /// A text.
    Text,
    /// A number without a fraction.
    Integer,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
    /// A choice among these texts.
    Choice(Vec<String>),
    /// Any of these texts, as a list.
    Choices(Vec<String>),
}

impl ElicitationForm {
    /// Returns the form of a schema, or the reason why it is not shown to a user.
    pub(super) fn of(schema: &ElicitationSchema) -> Result<Self, &'static str> {
        let order = schema.property_order.clone();
        let schema = serde_json::to_value(schema).map_err(|_| "its form cannot be read")?;
        let properties = schema["properties"].as_object().ok_or("its form has no fields")?;
        if properties.len() > MAX_FIELDS {
            return Err("its form has too many fields");
        }
        let names = order.unwrap_or_else(|| properties.keys().cloned().collect());
        let field = |name: &String| Some(ElicitationField::of(name, properties.get(name)?, &schema["required"]));
        let fields: Vec<_> = names.iter().filter_map(field).collect();
        if fields.iter().any(ElicitationField::is_secret) {
            return Err("its form asks for something secret, which the protocol forbids");
        }
        Ok(Self { fields, schema })
    }

    /// Returns the values that the server proposes.
    pub fn defaults(&self) -> Map<String, Value> {
        let proposed = |field: &ElicitationField| Some((field.name.clone(), field.default.clone()?));
        self.fields.iter().filter_map(proposed).collect()
    }

    /// Returns `values` with the proposed values of fields that have none, once they are as the form
    /// asks.
    ///
    /// # Errors
    ///
    /// Returns the first problem, in words for the user.
    pub fn complete(&self, values: Map<String, Value>) -> Result<Map<String, Value>, String> {
        let mut complete = self.defaults();
        complete.extend(values);
        if let Some(name) = complete
            .keys()
            .find(|name| self.fields.iter().all(|field| field.name != **name))
        {
            return Err(format!("the form has no field `{}`", one_line(name)));
        }
        let schema = ArgumentSchema::compile(&self.schema).map_err(|error| error.to_string())?;
        let text = Value::Object(complete.clone()).to_string();
        match schema.check(&text) {
            Ok(_) => Ok(complete),
            Err(error) => Err(error.problems().first().cloned().unwrap_or_default()),
        }
    }
}

impl ElicitationField {
    fn of(name: &str, schema: &Value, required: &Value) -> Self {
        let texts: Vec<_> = ["title", "description"]
            .iter()
            .filter_map(|key| schema[key].as_str())
            .collect();
        let is_required = required
            .as_array()
            .is_some_and(|names| names.iter().any(|other| other == name));
        Self {
            label: match &*texts {
                [] => shown(name),
                texts => shown(&texts.join(": ")),
            },
            kind: ElicitationKind::of(schema),
            is_required,
            default: schema.get("default").cloned(),
            name: name.to_owned(),
        }
    }

    /// Reads the value of the field from a user's words: a boolean from `yes`, several choices from a
    /// list with commas.
    ///
    /// # Errors
    ///
    /// Returns the values that are possible, in words for the user.
    pub fn read(&self, typed: &str) -> Result<Value, String> {
        let typed = typed.trim();
        match &self.kind {
            ElicitationKind::Text => Ok(typed.into()),
            ElicitationKind::Integer => typed
                .parse::<i64>()
                .map(Value::from)
                .map_err(|_| "a whole number".to_owned()),
            ElicitationKind::Number => {
                let number = typed.parse().ok().and_then(serde_json::Number::from_f64);
                number.map(Value::Number).ok_or_else(|| "a number".to_owned())
            }
            ElicitationKind::Boolean => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(true.into()),
                "n" | "no" | "false" => Ok(false.into()),
                _ => Err("yes or no".to_owned()),
            },
            ElicitationKind::Choice(choices) => chosen(choices, typed).map(Value::from),
            ElicitationKind::Choices(choices) => {
                let texts = typed.split(',').map(str::trim).filter(|text| !text.is_empty());
                let texts: Result<Vec<_>, _> = texts.map(|text| chosen(choices, text)).collect();
                texts.map(Value::from)
            }
        }
    }

    fn is_secret(&self) -> bool {
        if self.kind != ElicitationKind::Text {
            return false;
        }
        let plain = |text: &str| -> String { text.chars().filter(|c| c.is_alphanumeric()).collect() };
        let texts = [plain(&self.name).to_lowercase(), plain(&self.label).to_lowercase()];
        texts
            .iter()
            .any(|text| SECRETS.iter().any(|secret| text.contains(secret)))
    }
}

impl ElicitationKind {
    fn of(schema: &Value) -> Self {
        match schema["type"].as_str() {
            Some("integer") => Self::Integer,
            Some("number") => Self::Number,
            Some("boolean") => Self::Boolean,
            Some("array") => Self::Choices(choices(&schema["items"]).unwrap_or_default()),
            _ => choices(schema).map_or(Self::Text, Self::Choice),
        }
    }
}

/// Returns the texts that a schema allows, if it lists them.
fn choices(schema: &Value) -> Option<Vec<String>> {
    if let Some(texts) = schema["enum"].as_array() {
        let texts = texts.iter().filter_map(|text| Some(text.as_str()?.to_owned()));
        return Some(texts.take(MAX_CHOICES).collect());
    }
    let titled = ["oneOf", "anyOf"].into_iter().find_map(|key| schema[key].as_array())?;
    let texts = titled
        .iter()
        .filter_map(|choice| Some(choice["const"].as_str()?.to_owned()));
    Some(texts.take(MAX_CHOICES).collect())
}

fn chosen(choices: &[String], typed: &str) -> Result<String, String> {
    let found = choices.iter().find(|choice| choice.eq_ignore_ascii_case(typed));
    found.cloned().ok_or_else(|| {
        let shown: Vec<_> = choices.iter().map(|choice| one_line(choice)).collect();
        shown.join(", ")
    })
}

/// Returns a server's text on one line, with nothing hidden in it.
fn shown(text: &str) -> String {
    let line = one_line(text);
    line[..line.floor_char_boundary(MAX_TEXT)].to_owned()
}

/// Returns a server's text with nothing hidden in it.
pub(super) fn message(text: &str) -> String {
    let text = defused(text);
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(schema: &Value, typed: &str) -> Result<Value, String> {
        ElicitationField::of("x", schema, &json!(["x"])).read(typed)
    }

    #[test]
    fn what_a_user_types_becomes_a_value_of_the_field() {
        assert_eq!(read(&json!({"type": "string"}), " Miso \n"), Ok(json!("Miso")));
        assert_eq!(read(&json!({"type": "integer"}), "7"), Ok(json!(7)));
        assert_eq!(
            read(&json!({"type": "integer"}), "7.5"),
            Err("a whole number".to_owned())
        );
        assert_eq!(read(&json!({"type": "number"}), "7.5"), Ok(json!(7.5)));
        assert_eq!(read(&json!({"type": "number"}), "NaN"), Err("a number".to_owned()));
        assert_eq!(read(&json!({"type": "boolean"}), "YES"), Ok(json!(true)));
        assert_eq!(read(&json!({"type": "boolean"}), "maybe"), Err("yes or no".to_owned()));
        let size = json!({"type": "string", "enum": ["S", "L"]});
        assert_eq!(read(&size, "l"), Ok(json!("L")));
        assert_eq!(read(&size, "M"), Err("S, L".to_owned()));
        let fish = json!({"type": "array", "items": {"anyOf": [{"const": "tuna"}, {"const": "salmon"}]}});
        assert_eq!(read(&fish, "Salmon, tuna"), Ok(json!(["salmon", "tuna"])));
        assert_eq!(read(&fish, ""), Ok(json!([])));
    }
}
