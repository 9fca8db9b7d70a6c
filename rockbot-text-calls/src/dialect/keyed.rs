//! Calls as a name and pairs of a key and a value, each between tags of its own.

use super::parameters::{push_key, unless_any};
use crate::cursor::Cursor;
use crate::tools::{CallSite, Tools};

/// The tags of one form.
struct Tags<'a> {
    key: [&'a str; 2],
    value: [&'a str; 2],
    /// The token that closes the call.
    close: &'a str,
}

/// Parses, after `<tool_call>`, `get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value>`.
pub(super) fn glm(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let tags = Tags {
        key: ["<arg_key>", "</arg_key>"],
        value: ["<arg_value>", "</arg_value>"],
        close: "</tool_call>",
    };
    one(cursor, tools, &tags)
}

/// Parses the form of LongCat.
pub(super) fn longcat(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let tags = Tags {
        key: ["<longcat_arg_key>", "</longcat_arg_key>"],
        value: ["<longcat_arg_value>", "</longcat_arg_value>"],
        close: "</longcat_tool_call>",
    };
    one(cursor, tools, &tags)
}

/// Parses the form of Solar:
/// `get_weather<|tool_arg:start|>city<|tool_arg:value|>Paris<|tool_arg:end|>`.
pub(super) fn solar(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let tags = Tags {
        key: ["<|tool_arg:start|>", "<|tool_arg:value|>"],
        value: ["", "<|tool_arg:end|>"],
        close: "<|tool_call:end|>",
    };
    one(cursor, tools, &tags)
}

/// Parses one `<ifm|tool_call>` of K2 Horizon: pairs, or a JSON object.
pub(super) fn ifm(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    if !cursor.eat("<ifm|tool_call>") {
        return None;
    }
    let tags = Tags {
        key: ["<ifm|arg_key>", "</ifm|arg_key>"],
        value: ["<ifm|arg_value>", "</ifm|arg_value>"],
        close: "</ifm|tool_call>",
    };
    cursor.space();
    let calls = super::json_calls::read(cursor, tools).or_else(|| one(cursor, tools, &tags));
    if calls.is_none() {
        cursor.at = start;
    }
    cursor.space();
    cursor.eat(tags.close);
    calls
}

/// Parses, after `<tool_calls:`, a suffix and calls whose tags all end with it.
pub(super) fn suffixed(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let suffix = cursor.name();
    let tag = |name: &str| format!("<{name}:{suffix}>");
    let [call, key, key_end, value, value_end, call_end, all_end] = [
        "tool_call",
        "arg_key",
        "/arg_key",
        "arg_value",
        "/arg_value",
        "/tool_call",
        "/tool_calls",
    ]
    .map(tag);
    let tags = Tags {
        key: [&key, &key_end],
        value: [&value, &value_end],
        close: &call_end,
    };
    let mut calls = Vec::new();
    if cursor.eat(">") {
        cursor.space();
        while cursor.eat(&call) {
            calls.extend(one(cursor, tools, &tags).into_iter().flatten());
            cursor.space();
            cursor.eat(&call_end);
            cursor.space();
        }
        cursor.eat(&all_end);
    }
    if calls.is_empty() {
        cursor.at = start;
    }
    Some(calls).filter(|calls| !calls.is_empty())
}

fn one(cursor: &mut Cursor<'_>, tools: &Tools, tags: &Tags<'_>) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    cursor.space();
    let name = cursor.name();
    cursor.space();
    let separated = cursor.eat("<tool_sep>");
    cursor.space();
    let mut out = String::from("{");
    let mut cut = false;
    while cursor.eat(tags.key[0]) {
        let Some(end) = cursor.find(tags.key[1]) else {
            cut = true;
            cursor.at = cursor.text.len();
            break;
        };
        let key = cursor.text[cursor.at..end].trim();
        cursor.at = end + tags.key[1].len();
        cursor.space();
        skip_type(cursor);
        cursor.eat(tags.value[0]);
        let from = cursor.at;
        let close = cursor.find(tags.value[1]);
        cut |= close.is_none();
        let value = &cursor.text[from..close.unwrap_or(cursor.text.len())];
        cursor.at = from + value.len() + close.map_or(0, |_| tags.value[1].len());
        push_key(key, &mut out);
        tools.argument(name, key, value, None, &mut out);
        cursor.space();
    }
    out.push('}');
    // Without arguments only a known tool, closed, is a call: the opening tag is written about, too.
    let closed = separated || cursor.rest().starts_with(tags.close);
    if name.is_empty() || out == "{}" && !(closed && tools.resolve(name).is_some()) {
        cursor.at = start;
        return None;
    }
    cut |= !closed && cursor.rest().is_empty();
    let arguments = if cut { unless_any(out) } else { Ok(out) };
    Some(vec![tools.call(name, arguments, start..cursor.at)])
}

/// Moves over the type that K2 Horizon may write between a key and its value. The schema knows it
/// better.
fn skip_type(cursor: &mut Cursor<'_>) {
    if cursor.eat("<ifm|arg_type>")
        && let Some(end) = cursor.find("</ifm|arg_type>")
    {
        cursor.at = end + "</ifm|arg_type>".len();
        cursor.space();
    }
}
