//! The tools that a model may call, as a reader of text needs them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::Value;

use super::cursor::{Cursor, starts_with};
use super::json::Style;
use super::{MalformedKind, json};
use crate::ToolName;
use crate::tool::ToolView;

/// A call, or what is wrong with it, and where it stands.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) span: Range<usize>,
    pub(super) call: Result<Asked, Flaw>,
}

/// A call that can be made.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) name: ToolName,
    pub(super) arguments: String,
}

/// What is wrong with a call, and the name that it had, if it had one.
#[derive(Debug)]
pub(super) struct Flaw {
    pub(super) kind: MalformedKind,
    pub(super) name: Option<String>,
}

/// Prefixes that models put before a name: their own format's namespaces.
const NAMESPACES: [&str; 3] = ["functions.", "default_api.", "tools."];

#[derive(Debug, Default)]
pub(super) struct Tools {
    known: Vec<Known>,
    /// By the name in small letters; `None` when two tools differ only in the case of letters.
    by_lower_case: BTreeMap<String, Option<usize>>,
}

#[derive(Debug)]
struct Known {
    name: ToolName,
    /// Whether the schema has this argument, and then whether it is a text.
    is_text: BTreeMap<String, bool>,
}

impl Tools {
    pub(super) fn new(tools: impl IntoIterator<Item = (ToolName, Option<Value>)>) -> Self {
        let mut this = Self::default();
        let mut seen = BTreeSet::new();
        for (name, schema) in tools {
            if seen.insert(name.clone()) {
                let lower = name.as_str().to_ascii_lowercase();
                let index = this.known.len();
                let slot = this.by_lower_case.entry(lower);
                slot.and_modify(|index| *index = None).or_insert(Some(index));
                let is_text = schema.as_ref().map(texts_of).unwrap_or_default();
                this.known.push(Known { name, is_text });
            }
        }
        this
    }

    pub(super) fn of(view: &ToolView) -> Self {
        let registrations = view.entries().iter().map(|entry| entry.registration());
        Self::new(registrations.map(|tool| (tool.name.clone(), Some(tool.parameters_schema.clone()))))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(|known| known.name.as_str())
    }

    /// The tool of exactly this name, or the only one whose name differs just in the case of letters.
    pub(super) fn known(&self, name: &str) -> Option<&ToolName> {
        self.find(name).map(|known| &known.name)
    }

    /// As [`Tools::known`], also behind a namespace of the model's format.
    pub(super) fn resolve(&self, name: &str) -> Option<&ToolName> {
        self.find_anywhere(name).map(|known| &known.name)
    }

    fn find_anywhere(&self, name: &str) -> Option<&Known> {
        let behind = |namespace: &&str| starts_with(name, namespace).then(|| self.find(&name[namespace.len()..]));
        self.find(name).or_else(|| NAMESPACES.iter().find_map(behind).flatten())
    }

    fn find(&self, name: &str) -> Option<&Known> {
        if name.is_empty() || name.len() > 4 * ToolName::MAX_LEN {
            return None;
        }
        match self.by_lower_case.get(&name.to_ascii_lowercase())? {
            Some(index) => self.known.get(*index),
            None => self.known.iter().find(|known| known.name.as_str() == name),
        }
    }

    /// Makes a call of a name and arguments.
    pub(super) fn call(&self, name: &str, arguments: Result<String, MalformedKind>, span: Range<usize>) -> Entry {
        let name = name.trim();
        let flaw = |kind| Flaw {
            kind,
            name: (!name.is_empty()).then(|| name.chars().take(ToolName::MAX_LEN).collect()),
        };
        let call = match (self.resolve(name), arguments) {
            (None, _) if name.is_empty() => Err(flaw(MalformedKind::NoName)),
            (None, _) => Err(flaw(MalformedKind::UnknownTool)),
            (Some(_), Err(kind)) => Err(flaw(kind)),
            // The reader writes sound JSON but for lone surrogates and the like.
            (Some(_), Ok(arguments)) if serde_json::from_str::<serde_json::Map<_, _>>(&arguments).is_err() => {
                Err(flaw(MalformedKind::BrokenJson))
            }
            (Some(name), Ok(arguments)) => Ok(Asked {
                name: name.clone(),
                arguments,
            }),
        };
        Entry { span, call }
    }

    /// The JSON of an argument that was written without its type: text where the schema says text, else
    /// whatever JSON it is, else text.
    pub(super) fn argument(&self, tool: &str, key: &str, value: &str, says_text: Option<bool>, out: &mut String) {
        let schema = || self.find_anywhere(tool)?.is_text.get(key).copied();
        let is_text = says_text.or_else(schema);
        let value = value.trim_matches(['\n', '\r']);
        let json = serde_json::from_str::<Value>(value.trim()).ok();
        match json.filter(|json| is_text != Some(true) && !json.is_string()) {
            Some(_) => out.push_str(value.trim()),
            None if is_text == Some(false) => push_literal(value.trim(), out),
            None => json::push_string(value, out),
        }
    }
}

/// Appends what is no JSON but should not be text: perhaps a Python literal.
fn push_literal(value: &str, out: &mut String) {
    let mut cursor = Cursor::new(value);
    let mut read = String::new();
    match cursor.value(Style::Python, &mut read) {
        Ok(()) if cursor.rest().is_empty() => out.push_str(&read),
        _ => json::push_string(value, out),
    }
}

/// Which arguments of a schema are texts.
fn texts_of(schema: &Value) -> BTreeMap<String, bool> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let typed = properties.into_iter().flatten().filter_map(|(key, schema)| {
        let is_text = match schema.get("type")? {
            Value::String(kind) => kind == "string",
            Value::Array(kinds) => kinds.iter().all(|kind| kind == "string" || kind == "null"),
            _ => return None,
        };
        Some((key.clone(), is_text))
    });
    typed.collect()
}
