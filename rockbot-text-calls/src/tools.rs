//! The tools that a model may call, as a parser of text needs them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use crate::answer::MalformedKind;
use crate::cursor::{Cursor, name_at, starts_with};
use crate::json::{self, Style};

/// Maximum length of the name of a tool, in bytes: the maximum of the common providers.
const MAX_NAME_LEN: usize = 64;

/// A tool that a model was offered.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct OfferedTool<'a> {
    /// The name of the tool in a model's calls.
    pub name: &'a str,
    /// The description for the model.
    pub description: &'a str,
    /// The JSON Schema of its arguments.
    pub parameters: &'a Value,
    /// The JSON text of the schema as the model reads it; `None` if that is
    /// [`parameters`](Self::parameters) as it is.
    pub shown_parameters: Option<&'a str>,
}

impl<'a> OfferedTool<'a> {
    /// Creates the description of a tool whose arguments match the JSON Schema `parameters`.
    pub fn new(name: &'a str, description: &'a str, parameters: &'a Value) -> Self {
        Self {
            name,
            description,
            parameters,
            shown_parameters: None,
        }
    }

    /// Sets the JSON text of the schema that the model reads instead of
    /// [`parameters`](Self::parameters).
    #[must_use]
    pub fn with_shown_parameters(mut self, json: &'a str) -> Self {
        self.shown_parameters = Some(json);
        self
    }
}

/// A place in the answer where a call stands: the call, or its flaw.
#[derive(Debug)]
pub(super) struct CallSite {
    pub(super) span: Range<usize>,
    pub(super) call: Result<ParsedCall, Flaw>,
}

/// A call that can be executed.
#[derive(Debug)]
pub(super) struct ParsedCall {
    pub(super) name: Arc<str>,
    pub(super) arguments: String,
}

/// A flaw that prevents a call, with the tool's name as it was written, if there is one.
#[derive(Debug)]
pub(super) struct Flaw {
    pub(super) kind: MalformedKind,
    pub(super) name: Option<String>,
}

/// Namespaces of some models' own formats, which they write before a name.
const NAMESPACES: [&str; 3] = ["functions.", "default_api.", "tools."];

/// The known tools, indexed by name.
#[derive(Debug, Default)]
pub(super) struct Tools {
    known: Vec<KnownTool>,
    /// Index into `known` by the name in lower case; `None` when two tools differ only in case.
    by_lower_case: BTreeMap<String, Option<usize>>,
    /// Index into `known` by the letters and digits of the name; `None` when two tools have the same
    /// ones.
    by_letters: BTreeMap<String, Option<usize>>,
}

#[derive(Debug)]
struct KnownTool {
    name: Arc<str>,
    /// Properties with a declared type, each with `true` if that is a string.
    is_string: BTreeMap<String, bool>,
}

impl Tools {
    pub(super) fn new<'a>(tools: impl IntoIterator<Item = (Arc<str>, Option<&'a Value>)>) -> Self {
        let mut this = Self::default();
        let mut seen = BTreeSet::new();
        for (name, schema) in tools {
            if seen.insert(name.clone()) {
                let lower = name.to_ascii_lowercase();
                let index = this.known.len();
                for slot in [this.by_letters.entry(letters(&name)), this.by_lower_case.entry(lower)] {
                    slot.and_modify(|index| *index = None).or_insert(Some(index));
                }
                let is_string = schema.map(string_properties).unwrap_or_default();
                this.known.push(KnownTool { name, is_string });
            }
        }
        this
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(|known| &*known.name)
    }

    /// Returns the tool of exactly this name, or the only tool whose name differs just in case.
    pub(super) fn known(&self, name: &str) -> Option<&Arc<str>> {
        self.find(name).map(|known| &known.name)
    }

    /// Like [`Tools::known`], and also finds a name in the model's own spelling: behind the
    /// namespace of its format, with other separators or in camel case. It must leave one tool.
    pub(super) fn spelled(&self, name: &str) -> Option<&Arc<str>> {
        let is_letter = |char: char| char.is_ascii_alphanumeric();
        // Not `Search:`, which is a heading.
        let is_name = name_at(name) == name && name.starts_with(is_letter) && name.ends_with(is_letter);
        let known = if is_name {
            self.find_spelled(name)
        } else {
            self.find(name)
        };
        known.map(|known| &known.name)
    }

    /// Returns `true` if more letters could make `begun` a name that [`Tools::spelled`] finds.
    pub(super) fn may_be_spelled(&self, begun: &str) -> bool {
        let is_begun = |begun: &str| {
            let letters = letters(begun);
            let next = self.by_letters.range(letters.clone()..).next();
            next.is_some_and(|(known, _)| known.starts_with(&letters))
        };
        begun.starts_with(|char: char| char.is_ascii_alphanumeric())
            && (NAMESPACES.iter().any(|namespace| starts_with(namespace, begun))
                || is_begun(begun)
                || without_namespace(begun).is_some_and(is_begun))
    }

    /// Like [`Tools::spelled`], and also finds a name behind a namespace that the model invented.
    pub(super) fn resolve(&self, name: &str) -> Option<&Arc<str>> {
        self.find_anywhere(name).map(|known| &known.name)
    }

    fn find_anywhere(&self, name: &str) -> Option<&KnownTool> {
        let last = || name.rsplit(['.', ':', '/']).next().filter(|last| *last != name);
        self.find_spelled(name)
            .or_else(|| self.find(last()?))
            .or_else(|| self.find_by_letters(last()?))
    }

    fn find_spelled(&self, name: &str) -> Option<&KnownTool> {
        let bare = without_namespace(name);
        self.find(name)
            .or_else(|| self.find(bare?))
            .or_else(|| self.find_by_letters(name))
            .or_else(|| self.find_by_letters(bare?))
    }

    fn find_by_letters(&self, name: &str) -> Option<&KnownTool> {
        let letters = letters(name.get(..4 * MAX_NAME_LEN).unwrap_or(name));
        let index = (*self.by_letters.get(&letters)?).filter(|_| !letters.is_empty());
        self.known.get(index?)
    }

    fn find(&self, name: &str) -> Option<&KnownTool> {
        if name.is_empty() || name.len() > 4 * MAX_NAME_LEN {
            return None;
        }
        match self.by_lower_case.get(&name.to_ascii_lowercase())? {
            Some(index) => self.known.get(*index),
            None => self.known.iter().find(|known| &*known.name == name),
        }
    }

    /// Creates a call of a name and arguments, or a flaw when the tool is unknown or the arguments
    /// are unreadable.
    pub(super) fn call(&self, name: &str, arguments: Result<String, MalformedKind>, span: Range<usize>) -> CallSite {
        let name = name.trim();
        let flaw = |kind| Flaw {
            kind,
            name: (!name.is_empty()).then(|| name.chars().take(MAX_NAME_LEN).collect()),
        };
        let call = match (self.resolve(name), arguments) {
            (None, _) if name.is_empty() => Err(flaw(MalformedKind::NoName)),
            (None, _) => Err(flaw(MalformedKind::UnknownTool)),
            (Some(_), Err(kind)) => Err(flaw(kind)),
            // The cursor writes valid JSON except for lone surrogates and the like, which serde_json rejects.
            (Some(_), Ok(arguments)) if serde_json::from_str::<serde_json::Map<_, _>>(&arguments).is_err() => {
                Err(flaw(MalformedKind::BrokenJson))
            }
            (Some(name), Ok(arguments)) => Ok(ParsedCall {
                name: name.clone(),
                arguments,
            }),
        };
        CallSite { span, call }
    }

    /// Appends the JSON of an argument that was written without its type: a string where the schema
    /// declares one, otherwise the JSON that it is, otherwise a string. `declared` is the type that
    /// the markup itself declares.
    pub(super) fn argument(&self, tool: &str, key: &str, value: &str, declared: Option<bool>, out: &mut String) {
        let schema = || self.find_anywhere(tool)?.is_string.get(key).copied();
        let is_string = declared.or_else(schema);
        let value = value.trim_matches(['\n', '\r']);
        let json = serde_json::from_str::<Value>(value.trim()).ok();
        match json.filter(|json| is_string != Some(true) && !json.is_string()) {
            Some(_) => out.push_str(value.trim()),
            None if is_string == Some(false) => push_literal(value.trim(), out),
            None => json::push_string(value, out),
        }
    }
}

/// Returns the name behind the namespace of a model's own format.
fn without_namespace(name: &str) -> Option<&str> {
    let namespace = NAMESPACES.iter().find(|namespace| starts_with(name, namespace))?;
    Some(&name[namespace.len()..])
}

/// Returns the letters and digits of a name, in lower case.
fn letters(name: &str) -> String {
    let kept = name.chars().filter(char::is_ascii_alphanumeric);
    kept.map(|char| char.to_ascii_lowercase()).collect()
}

/// Appends a value that is neither JSON nor declared as a string: as a Python literal if it is
/// one, else as a string.
fn push_literal(value: &str, out: &mut String) {
    let mut cursor = Cursor::new(value);
    let mut read = String::new();
    match cursor.value(Style::Python, &mut read) {
        Ok(()) if cursor.rest().is_empty() => out.push_str(&read),
        _ => json::push_string(value, out),
    }
}

/// Returns for each property of a schema that declares a type whether that is a string.
fn string_properties(schema: &Value) -> BTreeMap<String, bool> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let typed = properties.into_iter().flatten().filter_map(|(key, schema)| {
        let is_string = match schema.get("type")? {
            Value::String(kind) => kind == "string",
            Value::Array(kinds) => kinds.iter().all(|kind| kind == "string" || kind == "null"),
            _ => return None,
        };
        Some((key.clone(), is_string))
    });
    typed.collect()
}
