//! Texts that are nothing but calls without a marker: plain JSON, Python, or a bare name.

use crate::answer::MalformedKind;
use crate::cursor::Cursor;
use crate::tools::{CallSite, Flaw, Tools};
use crate::{call_object, dialect};

/// Parses JSON objects, lists of them, Python calls, or a name that cannot be a word.
pub(super) fn plain(text: &str, tools: &Tools) -> Option<Vec<CallSite>> {
    let end = text.trim_end().len();
    let mut cursor = Cursor::new(&text[..end]);
    let mut sites = Vec::new();
    let mut in_list = false;
    cursor.space();
    let start = cursor.at;
    while !cursor.rest().is_empty() {
        if !in_list && cursor.peek() == Some(b'[') {
            match dialect::known_list(&mut cursor, tools) {
                Some(more) => sites.extend(more),
                None => {
                    in_list = true;
                    cursor.at += 1;
                }
            }
        } else if in_list && cursor.eat("]") {
            in_list = false;
        } else if cursor.peek() == Some(b'{') {
            match call_object::unmarked(&mut cursor, tools) {
                Some(more) => sites.extend(more),
                None => return broken(&text[start..end], start, tools).filter(|_| sites.is_empty() && !in_list),
            }
        } else if let Some(more) = dialect::bare_call(&mut cursor, tools) {
            sites.extend(more);
        } else {
            return name_alone(&text[start..end], start, tools).filter(|_| cursor.at == start);
        }
        dialect::separators(&mut cursor);
    }
    (!sites.is_empty()).then_some(sites)
}

/// Parses JSON that is certainly a call, or a list of calls: of known tools, complete, and
/// nothing strange beside them.
pub(super) fn json(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let is_list = cursor.eat("[");
    let mut sites = Vec::new();
    loop {
        cursor.space();
        match call_object::unmarked(cursor, tools) {
            Some(more) => sites.extend(more),
            None => {
                cursor.at = start;
                return None;
            }
        }
        dialect::separators(cursor);
        if !is_list || cursor.peek() != Some(b'{') {
            break;
        }
    }
    let end = sites.last().map_or(start, |site: &CallSite| site.span.end);
    let closed = !is_list || cursor.eat("]");
    let complete = closed && cursor.text[..end].ends_with('}') && sites.iter().all(|site| site.call.is_ok());
    if sites.is_empty() || !complete {
        cursor.at = start;
        return None;
    }
    if !is_list {
        cursor.at = end;
    }
    Some(sites)
}

/// Parses `function call{…}`, whose tokens servers may have removed (GigaChat 3). Only a known tool
/// counts.
pub(super) fn gigachat(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let mut calls = if cursor.eat("function call") {
        cursor.space();
        json(cursor, tools)
    } else {
        None
    };
    match calls.as_mut().and_then(|calls| calls.first_mut()) {
        Some(first) => first.span.start = start,
        None => cursor.at = start,
    }
    calls
}

/// Returns a flaw for a broken object that can only have been a call.
fn broken(text: &str, start: usize, tools: &Tools) -> Option<Vec<CallSite>> {
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let name = call_object::broken_unmarked(text, tools).filter(|_| !is_json)?;
    let flaw = Flaw {
        kind: MalformedKind::BrokenJson,
        name: Some(name.into()),
    };
    let span = start..start + text.len();
    Some(vec![CallSite { span, call: Err(flaw) }])
}

/// Parses a tool name alone that is no word of any language: `list_tasks`, not `now`.
fn name_alone(text: &str, start: usize, tools: &Tools) -> Option<Vec<CallSite>> {
    let name = tools.known(text)?;
    let no_word = text == &**name && text.contains('_');
    no_word.then(|| vec![tools.call(text, Ok("{}".into()), start..start + text.len())])
}
