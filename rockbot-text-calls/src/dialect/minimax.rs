//! MiniMax M3: a tag for each argument, under the argument's own name, and nested tags for
//! objects and lists.
//!
//! Every tag stands behind a special token, which servers may have removed.

use super::parameters::push_key;
use crate::cursor::Cursor;
use crate::tools::{CallSite, Tools};

const TOKEN: &str = "]<]minimax[>[";
/// Maximum nesting depth of a value. Recursion is bounded by it.
const MAX_DEPTH: usize = 20;

/// Parses `<invoke name="get_weather"><city>Paris</city></invoke>`.
pub(super) fn read(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let call = call(cursor, tools, start);
    if call.is_none() {
        cursor.at = start;
    }
    Some(vec![call?])
}

fn call(cursor: &mut Cursor<'_>, tools: &Tools, start: usize) -> Option<CallSite> {
    cursor.eat(TOKEN);
    if !cursor.eat("<invoke name=") {
        return None;
    }
    cursor.eat_any(&["\"", "'"]);
    let name = cursor.name();
    cursor.eat_any(&["\"", "'"]);
    if name.is_empty() || !cursor.eat(">") {
        return None;
    }
    let mut out = String::from("{");
    let closed = loop {
        cursor.space();
        match tag(cursor)? {
            "/invoke" => break true,
            close if close.starts_with('/') => return None,
            key => {
                push_key(key, &mut out);
                value(cursor, tools, (name, key), 0, &mut out)?;
            }
        }
        if cursor.rest().is_empty() {
            break false;
        }
    };
    out.push('}');
    closed.then(|| tools.call(name, Ok(out), start..cursor.at))
}

/// Moves over a tag and returns its name, with the slash of a closing one.
fn tag<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    let start = cursor.at;
    cursor.eat(TOKEN);
    if !cursor.eat("<") {
        cursor.at = start;
        return None;
    }
    let from = cursor.at;
    cursor.eat("/");
    let text = cursor.text;
    let name = cursor.name();
    let name = &text[from..cursor.at - usize::from(name.ends_with('/'))];
    cursor.spend(name.len() + 1).ok()?;
    if name.trim_matches('/').is_empty() || !cursor.eat(">") {
        cursor.at = start;
        return None;
    }
    Some(name)
}

/// Parses the value of an argument, and its closing tag, into JSON. Tags in it are nested values
/// if they are known to be tags, because the special token stands before them, and text
/// otherwise.
fn value(
    cursor: &mut Cursor<'_>,
    tools: &Tools,
    (tool, key): (&str, &str),
    depth: usize,
    out: &mut String,
) -> Option<()> {
    let with_token = cursor.text[..cursor.at].ends_with(&format!("{TOKEN}<{key}>"));
    let close = format!("{}</{key}>", if with_token { TOKEN } else { "" });
    let start = cursor.at;
    cursor.space();
    let nested = with_token && cursor.rest().starts_with(TOKEN) && !cursor.rest().starts_with(&close);
    if nested && depth < MAX_DEPTH {
        members(cursor, tools, depth + 1, out)?;
        cursor.space();
        return cursor.eat(&close).then_some(());
    }
    cursor.at = start;
    let end = cursor.find(&close)?;
    tools.argument(tool, key, &cursor.text[start..end], None, out);
    cursor.at = end + close.len();
    Some(())
}

/// Parses nested tags: a list if they are all `item`, otherwise an object.
fn members(cursor: &mut Cursor<'_>, tools: &Tools, depth: usize, out: &mut String) -> Option<()> {
    let is_list = cursor.rest().starts_with(&format!("{TOKEN}<item>"));
    out.push(if is_list { '[' } else { '{' });
    let mut first = true;
    while !cursor.rest().starts_with(&format!("{TOKEN}</")) {
        let key = tag(cursor)?;
        if is_list && key != "item" {
            return None;
        }
        if !first {
            out.push(',');
        }
        first = false;
        if !is_list {
            crate::json::push_string(key, out);
            out.push(':');
        }
        value(cursor, tools, ("", key), depth, out)?;
        cursor.space();
    }
    out.push(if is_list { ']' } else { '}' });
    Some(())
}
