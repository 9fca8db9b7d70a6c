//! Calls as JSON objects: a name and arguments, under the keys that models use.

use crate::answer::MalformedKind;
use crate::cursor::Cursor;
use crate::cursor::Unreadable;
use crate::json::{Member, decoded, is_object, object_of};
use crate::tools::{CallSite, Flaw, Tools};

const NAMES: [&str; 6] = ["name", "tool_name", "function_name", "tool", "function", "action"];
const ARGUMENTS: [&str; 7] = [
    "arguments",
    "parameters",
    "params",
    "args",
    "input",
    "tool_input",
    "action_input",
];
/// Other keys that an object without a marker may have.
const BESIDE: [&str; 5] = ["id", "type", "index", "tool_call_id", "call_id"];

/// Parses the object after a marker. `None` when it is the *definition* of a tool, which models like to repeat.
pub(super) fn marked(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<CallSite> {
    let start = cursor.at;
    let Ok((text, members)) = cursor.object_in_any_style() else {
        let name = name_of_broken(cursor.rest());
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

/// Reads the object when nothing but its shape says that it is a call: both keys, nothing strange beside them,
/// arguments that are an object, and a known name. An unknown one counts only under `name` and `arguments`.
pub(super) fn unmarked(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<CallSite> {
    let start = cursor.at;
    let (text, members) = cursor.object_in_any_style().ok()?;
    let object = CallObject::of(&text, &members, tools).ok()?;
    let expected = |key: &str| NAMES.contains(&key) || ARGUMENTS.contains(&key) || BESIDE.contains(&key);
    let plain = members.iter().all(|member| expected(&member.key));
    let openai = members.iter().any(|member| member.key == "name") && members.iter().any(|m| m.key == "arguments");
    let arguments = object.arguments().ok().filter(|_| object.arguments.is_some())?;
    if !plain || object.is_definition() || (tools.resolve(&object.name).is_none() && !openai) || object.name.is_empty()
    {
        return None;
    }
    Some(tools.call(&object.name, Ok(arguments), start..cursor.at))
}

/// Returns the known tool that a broken object without a marker names first, before its arguments.
pub(super) fn broken_unmarked<'t>(text: &str, tools: &'t Tools) -> Option<&'t str> {
    let name = name_of_broken(text)?;
    let head: String = text.chars().take(name.len() + 64).collect();
    let goes_on = ["\"arguments\"", "\"parameters\""].iter().any(|key| head.contains(key));
    tools.resolve(&name).filter(|_| goes_on).map(|name| &**name)
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
            && tools.known(&only.key).is_some()
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
