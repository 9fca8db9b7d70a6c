//! Calls as Python: `get_weather(city="Paris")`, alone, in `print(…)`, or in a list.

use crate::answer::MalformedKind;
use crate::cursor::Cursor;
use crate::cursor::Unreadable;
use crate::json::{Style, push_string};
use crate::tools::{CallSite, Tools};

/// Parses a call or a list of calls.
pub(super) fn read(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let entries = if cursor.eat("[") {
        list(cursor, tools)
    } else {
        printed(cursor, tools).map(|entry| vec![entry])
    };
    if entries.is_none() {
        cursor.at = start;
    }
    entries
}

/// Parses a list of calls of known tools, which needs no marker (Llama 4, Olmo 3, the Berkeley
/// leaderboard's form).
pub(crate) fn known_list(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let is_list = cursor.eat("[");
    cursor.blank();
    let named = is_list && tools.spelled(cursor.name()).is_some();
    cursor.at = start;
    let entries = if named { read(cursor, tools) } else { None };
    known_only(cursor, start, entries)
}

/// Parses one call of a known tool, without anything around it.
pub(crate) fn bare_call(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let named = tools.spelled(cursor.name()).is_some();
    cursor.at = start;
    let entries = if named { read(cursor, tools) } else { None };
    known_only(cursor, start, entries)
}

/// Parses calls in a fence of their own (MiniCPM 3).
pub(super) fn fenced(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let mut entries = Vec::new();
    if cursor.eat("```") {
        cursor.eat("python");
        cursor.space();
        while let Some(more) = read(cursor, tools) {
            entries.extend(more);
            super::separators(cursor);
        }
    }
    if entries.is_empty() || !cursor.eat("```") {
        cursor.at = start;
        return None;
    }
    Some(entries)
}

fn known_only(cursor: &mut Cursor<'_>, start: usize, entries: Option<Vec<CallSite>>) -> Option<Vec<CallSite>> {
    let entries = entries.filter(|entries| entries.iter().all(|entry| entry.call.is_ok()));
    if entries.is_none() {
        cursor.at = start;
    }
    entries
}

fn list(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let mut entries = Vec::new();
    loop {
        super::separators(cursor);
        if cursor.eat("]") || !entries.is_empty() && cursor.is_at_end() {
            return (!entries.is_empty()).then_some(entries);
        }
        entries.push(call(cursor, tools)?);
    }
}

fn printed(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<CallSite> {
    let start = cursor.at;
    if !cursor.eat("print(") {
        return call(cursor, tools);
    }
    let mut entry = call(cursor, tools)?;
    cursor.space();
    if !cursor.eat(")") && !cursor.is_at_end() {
        return None;
    }
    entry.span = start..cursor.at;
    Some(entry)
}

/// Parses one call. Unreadable arguments are a malformed call if the tool is known; otherwise it
/// is some other Python.
fn call(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<CallSite> {
    let start = cursor.at;
    let name = cursor.name();
    // Llama 3.1 writes `brave_search.call(…)` for its built-in tools.
    let name = name
        .strip_suffix(".call")
        .filter(|name| tools.resolve(name).is_some())
        .unwrap_or(name);
    if name.is_empty() || !cursor.eat("(") {
        return None;
    }
    let arguments = keywords(cursor);
    if arguments.is_err() {
        tools.resolve(name)?;
        cursor.skip_to_end();
    }
    let arguments = arguments.map_err(|Unreadable| MalformedKind::ArgumentsNotNamed);
    Some(tools.call(name, arguments, start..cursor.at))
}

/// Parses keyword arguments up to the closing parenthesis into a JSON object.
fn keywords(cursor: &mut Cursor<'_>) -> Result<String, Unreadable> {
    let mut out = String::from("{");
    cursor.space();
    while !cursor.eat(")") {
        let key = cursor.name();
        cursor.space();
        if key.is_empty() || !cursor.eat("=") {
            return Err(Unreadable);
        }
        if out.len() > 1 {
            out.push(',');
        }
        push_string(key, &mut out);
        out.push(':');
        cursor.value(Style::Python, &mut out)?;
        cursor.space();
        if !cursor.eat(",") && !cursor.rest().starts_with(')') {
            return Err(Unreadable);
        }
        cursor.space();
    }
    out.push('}');
    Ok(out)
}
