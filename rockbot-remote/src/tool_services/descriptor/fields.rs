//! The members of a descriptor, read one by one with errors that name them.

use serde_json::{Map, Value};

use super::DescriptorProblem;

/// The members of a descriptor, with the place where it stands.
#[derive(Debug)]
pub(in crate::tool_services) struct Fields {
    place: String,
    members: Map<String, Value>,
}

impl Fields {
    /// Parses a JSON object. A byte order mark before it is skipped.
    pub(in crate::tool_services) fn parse(place: &str, text: &[u8]) -> Result<Self, DescriptorProblem> {
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        let value: Value = serde_json::from_slice(text)
            .map_err(|error| DescriptorProblem::new(place, format!("it is not JSON: {error}")))?;
        Self::of(place, value)
    }

    /// Returns the members of a JSON value, which must be an object.
    pub(in crate::tool_services) fn of(place: &str, value: Value) -> Result<Self, DescriptorProblem> {
        let Value::Object(members) = value else {
            return Err(DescriptorProblem::new(place, "it is no JSON object: write `{…}`"));
        };
        Ok(Self {
            place: place.to_owned(),
            members,
        })
    }

    pub(super) fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// Returns a text that may be missing. An empty text is an error.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, DescriptorProblem> {
        match self.members.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text)),
            Some(Value::String(_)) => Err(self.wrong(name, "is empty: set it to a text, or remove it")),
            Some(_) => Err(self.wrong(name, "is no text: write it in quotes")),
        }
    }

    /// Returns a text.
    pub(super) fn required_text(&self, name: &str) -> Result<&str, DescriptorProblem> {
        let missing = || self.wrong(name, "is missing: set it to a text");
        self.text(name)?.ok_or_else(missing)
    }

    /// Returns `true` or `false`, or `default` if it is missing.
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, DescriptorProblem> {
        match self.members.get(name) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong(name, "is neither `true` nor `false`")),
        }
    }

    /// Returns the elements of a list; none if it is missing.
    pub(super) fn list(&self, name: &str) -> Result<&[Value], DescriptorProblem> {
        match self.members.get(name) {
            None => Ok(&[]),
            Some(Value::Array(elements)) => Ok(elements),
            Some(_) => Err(self.wrong(name, "is no list: write `[…]`")),
        }
    }

    /// Creates the problem of a field; `message` says more: "is missing: …".
    pub(super) fn wrong(&self, name: &str, message: impl Into<String>) -> DescriptorProblem {
        DescriptorProblem::in_field(&self.place, name, message)
    }

    /// Creates the problem of an element of the list `name`, or of a `part` of it.
    pub(super) fn wrong_element(
        &self,
        (name, index): (&str, usize),
        part: Option<&str>,
        message: impl Into<String>,
    ) -> DescriptorProblem {
        let field = match part {
            Some(part) => format!("{name}[{index}].{part}"),
            None => format!("{name}[{index}]"),
        };
        self.wrong(&field, message)
    }

    /// Returns the members of an element of the list `name`, whose problems name it.
    pub(super) fn element(
        &self,
        (name, index): (&str, usize),
        value: &Value,
    ) -> Result<Element<'_>, DescriptorProblem> {
        let Value::Object(members) = value else {
            return Err(self.wrong_element((name, index), None, "is no JSON object: write `{…}`"));
        };
        let fields = Self {
            place: self.place.clone(),
            members: members.clone(),
        };
        Ok(Element {
            whole: self,
            at: (name.to_owned(), index),
            fields,
        })
    }
}

/// An object in a list of a descriptor.
#[derive(Debug)]
pub(super) struct Element<'a> {
    whole: &'a Fields,
    at: (String, usize),
    fields: Fields,
}

impl Element<'_> {
    /// Reads a member; a problem names the list and the position of this element, too.
    pub(super) fn get<'f, T>(
        &'f self,
        read: impl FnOnce(&'f Fields) -> Result<T, DescriptorProblem>,
    ) -> Result<T, DescriptorProblem> {
        read(&self.fields).map_err(|problem| {
            let (name, index) = &self.at;
            let part = problem.field.as_deref();
            self.whole.wrong_element((name, *index), part, problem.message.clone())
        })
    }
}
