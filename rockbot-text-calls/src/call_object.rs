//! Calls as JSON objects: a name and arguments, under the keys that models use.

use std::ops::Range;

use crate::answer::MalformedKind;
use crate::cursor::{Cursor, Unreadable};
use crate::json::{Member, decoded, is_object, object_of};
use crate::tools::{CallSite, Flaw, Tools};

const NAMES: [&str; 6] = ["name", "tool_name", "function_name", "tool", "function", "action"];
const ARGUMENTS: [&str; 8] = [
    "arguments",
    "parameters",
    "params",
    "args",
    "kwargs",
    "input",
    "tool_input",
    "action_input",
];
/// Keys that hold the calls of a message.
const ENVELOPES: [&str; 3] = ["tool_calls", "tool_call", "function_call"];
/// Other keys of such a message.
const MESSAGE: [&str; 6] = ["role", "content", "refusal", "reasoning", "thought", "thoughts"];
/// Other keys that an object without a marker may have.
const BESIDE: [&str; 5] = ["id", "type", "index", "tool_call_id", "call_id"];

/// Parses the object after a marker. `None` when it is the *definition* of a tool, which models
/// like to repeat.
pub(super) fn marked(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<CallSite> {
    let start = cursor.at;
    let read = cursor.object_in_any_style();
    let Some((text, members)) = read.ok().filter(|_| cursor.cut == 0) else {
        let name = name_of_broken(&cursor.text[start..]);
        cursor.skip_to_end();
        let kind = MalformedKind::BrokenJson;
        let call = Err(Flaw { kind, name });
        let span = start..cursor.at;
        return Some(CallSite { span, call });
    };
    let span = start..cursor.at;
    let object = CallObject::of(&text, &members, tools).ok()?;
    if object.is_definition() {
        cursor.at = start;
        return None;
    }
    Some(tools.call(&object.name, object.arguments(), span))
}

/// Reads the calls of an object when nothing but its shape says that it holds any: a call with a
/// name, arguments and nothing strange beside them, or a message in OpenAI's wire format around a
/// list of such calls.
pub(super) fn unmarked(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let (text, members) = cursor.object_in_any_style().ok()?;
    // Llama 3 forgets the last bracket now and then. The arguments within it are complete.
    if cursor.cut > 1 {
        return None;
    }
    let span = start..cursor.at;
    let Some(calls) = members.iter().find(|member| ENVELOPES.contains(&&*member.key)) else {
        return certain(&text, &members, span, tools).map(|call| vec![call]);
    };
    let expected = |key: &str| ENVELOPES.contains(&key) || MESSAGE.contains(&key) || BESIDE.contains(&key);
    if !members.iter().all(|member| expected(&member.key)) {
        return None;
    }
    cursor.at = calls.source;
    let mut sites = enveloped(cursor, tools)?;
    cursor.at = span.end;
    // The message around the calls belongs to the first and the last of them.
    sites.first_mut()?.span.start = span.start;
    sites.last_mut()?.span.end = span.end;
    Some(sites)
}

/// Reads one call, or a list of them.
fn enveloped(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let mut sites = Vec::new();
    cursor.space();
    let is_list = cursor.eat("[");
    loop {
        cursor.space();
        let start = cursor.at;
        let (text, members) = cursor.object_in_any_style().ok()?;
        sites.push(certain(&text, &members, start..cursor.at, tools)?);
        cursor.space();
        if !is_list || !cursor.eat(",") {
            return Some(sites);
        }
    }
}

/// Returns the call of an object with both keys, nothing strange beside them, arguments that are
/// an object, and a known name. An unknown one counts only under `name` and `arguments`.
fn certain(text: &str, members: &[Member], span: Range<usize>, tools: &Tools) -> Option<CallSite> {
    let object = CallObject::of(text, members, tools).ok()?;
    let expected = |key: &str| NAMES.contains(&key) || ARGUMENTS.contains(&key) || BESIDE.contains(&key);
    let is_tool = |key: &str| members.len() == 1 && tools.spelled(key).is_some();
    let plain = members
        .iter()
        .all(|member| expected(&member.key) || is_tool(&member.key));
    let openai = members.iter().any(|member| member.key == "name") && members.iter().any(|m| m.key == "arguments");
    let arguments = object.arguments().ok().filter(|_| object.arguments.is_some())?;
    let known = tools.resolve(&object.name).is_some() || openai;
    if !plain || !known || object.is_definition() || object.name.is_empty() {
        return None;
    }
    Some(tools.call(&object.name, Ok(arguments), span))
}

/// Returns the known tool that a broken object without a marker names first, before its arguments.
pub(super) fn broken_unmarked<'t>(text: &str, tools: &'t Tools) -> Option<&'t str> {
    let name = name_of_broken(text)?;
    let head: String = text.chars().take(name.len() + 64).collect();
    let goes_on = ["\"arguments\"", "\"parameters\""].iter().any(|key| head.contains(key));
    tools.resolve(&name).filter(|_| goes_on).map(|name| &**name)
}

/// Returns `true` for a key that only a call has, and a message around calls.
pub(super) fn is_key_of_call(key: &str) -> bool {
    ARGUMENTS.contains(&key) || ENVELOPES.contains(&key)
}

/// Returns `true` for a key that holds the name of a call's tool.
pub(super) fn is_key_of_name(key: &str) -> bool {
    NAMES.contains(&key)
}

/// Returns all keys that [`unmarked`] accepts, except keys that are names of tools.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    let keys = NAMES.iter().chain(&ARGUMENTS).chain(&ENVELOPES);
    keys.chain(&MESSAGE).chain(&BESIDE).copied()
}

struct CallObject {
    name: String,
    arguments: Option<String>,
    described: bool,
}

impl CallObject {
    fn of(text: &str, members: &[Member], tools: &Tools) -> Result<Self, Unreadable> {
        let value = |keys: &[&str]| {
            let named = members.iter().find(|member| keys.contains(&member.key.as_str()));
            named.map(|member| &text[member.value.clone()])
        };
        // OpenAI's wire form, `{"type":"function","function":{…}}`.
        if let Some(inner) = value(&["function"]).filter(|inner| is_object(inner)) {
            let (text, members) = object_of(inner)?;
            return Self::of(&text, &members, tools);
        }
        let mut name = value(&NAMES).and_then(|name| decoded(name).ok()).unwrap_or_default();
        let mut arguments = value(&ARGUMENTS);
        // `{"get_weather": {…}}`
        if let ([only], true, true) = (members, name.is_empty(), arguments.is_none())
            && tools.spelled(&only.key).is_some()
        {
            name.clone_from(&only.key);
            arguments = Some(&text[only.value.clone()]);
        }
        Ok(Self {
            name,
            arguments: arguments.map(str::to_owned),
            described: value(&["description"]).is_some(),
        })
    }

    /// Returns `true` if the object describes a tool instead of calling it.
    fn is_definition(&self) -> bool {
        let arguments = self.arguments.as_deref().unwrap_or_default();
        let schema = serde_json::from_str::<serde_json::Value>(arguments).unwrap_or_default();
        let is_schema = schema.get("type").is_some_and(|kind| kind == "object")
            && schema.get("properties").is_some_and(serde_json::Value::is_object);
        is_schema || self.described && self.arguments.is_none()
    }

    fn arguments(&self) -> Result<String, MalformedKind> {
        match self.arguments.as_deref() {
            None | Some("null") => Ok("{}".into()),
            Some(object) if is_object(object) => Ok(object.into()),
            Some(text) if text.starts_with('"') => of_text(&decoded(text).unwrap_or_default()),
            Some(_) => Err(MalformedKind::ArgumentsNotObject),
        }
    }
}

/// Parses arguments that are an object inside a string, as in OpenAI's wire format.
pub(super) fn of_text(text: &str) -> Result<String, MalformedKind> {
    match text.trim() {
        "" => Ok("{}".into()),
        text if is_object(text) => object_of(text)
            .map(|(object, _)| object)
            .map_err(|_| MalformedKind::BrokenJson),
        _ => Err(MalformedKind::ArgumentsNotObject),
    }
}

/// Returns the name at the start of a broken object.
fn name_of_broken(text: &str) -> Option<String> {
    let mut cursor = Cursor::new(text);
    while cursor.eat("{") {}
    cursor.space();
    let key = ["\"name\"", "'name'", "\"tool_name\""];
    if !cursor.eat_any(&key) {
        return None;
    }
    cursor.space();
    cursor.eat(":");
    cursor.space();
    let quoted = cursor.eat_any(&["\"", "'"]);
    let name = cursor.name();
    (quoted && !name.is_empty()).then(|| name.into())
}
