//! Sections of Kimi K3, each between tags of three tokens:
//! `<|open|>response<|sep|>…<|close|>response<|sep|>`.

use std::borrow::Cow;

use super::framed::Framed;
use super::parameters::push_key;
use crate::answer::MalformedKind;
use crate::cursor::{Cursor, name_at};
use crate::tools::{CallSite, Tools};

const OPEN: &str = "<|open|>";
const CLOSE: &str = "<|close|>";
const SEPARATOR: &str = "<|sep|>";
/// Maximum length of the name and the attributes of a tag, in bytes.
const MAX_TAG: usize = 256;
const SECTIONS: [&str; 4] = ["think", "response", "tools", "message"];

/// Parses the sections that follow each other at the cursor. The prompt may hold the first tag.
pub(super) fn read(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Framed> {
    let start = cursor.at;
    let mut framed = Framed::default();
    let mut end = start;
    while section(cursor, tools, &mut framed).is_some() {
        if cursor.spend(cursor.at - end).is_err() {
            break;
        }
        end = cursor.at;
        cursor.space();
    }
    cursor.at = end;
    (end > start).then_some(framed)
}

/// Parses a section, or a part of one: a tag around others, or a call.
fn section(cursor: &mut Cursor<'_>, tools: &Tools, framed: &mut Framed) -> Option<()> {
    let start = cursor.at;
    if cursor.eat("<|end_of_msg|>") || SECTIONS.iter().any(|name| closes(cursor, name)) {
        return Some(());
    }
    let (name, attributes) = open(cursor)?;
    let body = cursor.at;
    match name {
        "tools" => {}
        "message" if attributes.contains("\"assistant\"") => {}
        "think" => {
            content(cursor, |cursor| closes(cursor, "think"));
            framed.settled = cursor.at;
        }
        "response" => {
            content(cursor, |cursor| {
                [OPEN, CLOSE].iter().any(|tag| cursor.rest().starts_with(tag))
            });
            framed.add_words(cursor.text, body..cursor.at);
            framed.settled = body;
        }
        "call" => framed.sites.push(call(cursor, tools, attributes, start)),
        _ => {
            cursor.at = start;
            return None;
        }
    }
    Some(())
}

/// Parses the arguments of a call, whose tag begins at `start`.
fn call(cursor: &mut Cursor<'_>, tools: &Tools, attributes: &str, start: usize) -> CallSite {
    let name = attribute(attributes, "tool").unwrap_or_default();
    let mut out = String::from("{");
    let complete = loop {
        cursor.space();
        if closes(cursor, "call") {
            break true;
        }
        let at = cursor.at;
        match open(cursor) {
            Some(("argument", attributes)) => {
                if argument(cursor, tools, (&name, attributes), &mut out).is_none() {
                    break false;
                }
            }
            _ => {
                // The closing tag may be forgotten before another tag. Where the text ends it was cut.
                cursor.at = at;
                break cursor.rest().starts_with("<|");
            }
        }
    };
    out.push('}');
    let arguments = if complete {
        Ok(out)
    } else {
        Err(MalformedKind::BrokenJson)
    };
    tools.call(&name, arguments, start..cursor.at)
}

/// Parses the value of an argument and its closing tag, and appends the argument to the object.
fn argument(cursor: &mut Cursor<'_>, tools: &Tools, (tool, attributes): (&str, &str), out: &mut String) -> Option<()> {
    let from = cursor.at;
    let until = content(cursor, |cursor| closes(cursor, "argument"))?;
    let key = attribute(attributes, "key")?;
    let is_text = attribute(attributes, "type").map(|kind| kind == "string");
    push_key(&key, out);
    tools.argument(tool, &key, &cursor.text[from..until], is_text, out);
    Some(())
}

/// Moves to the token where `ends` is true, or to where `ends` moved from there, and returns the
/// offset of that token. Returns `None`, at the end of the text, when there is no such token.
fn content(cursor: &mut Cursor<'_>, ends: impl Fn(&mut Cursor<'_>) -> bool) -> Option<usize> {
    loop {
        let Some(at) = cursor.find("<|") else {
            cursor.at = cursor.text.len();
            return None;
        };
        cursor.at = at;
        if ends(cursor) {
            return Some(at);
        }
        cursor.at = at + "<|".len();
    }
}

/// Moves past an opening tag and returns its name and its attributes.
fn open<'a>(cursor: &mut Cursor<'a>) -> Option<(&'a str, &'a str)> {
    let rest = cursor.head(MAX_TAG).strip_prefix(OPEN)?;
    let tag = &rest[..rest.find(SEPARATOR)?];
    cursor.spend(tag.len()).ok()?;
    cursor.at += OPEN.len() + tag.len() + SEPARATOR.len();
    let tag = tag.trim_start();
    let name = name_at(tag);
    Some((name, &tag[name.len()..]))
}

/// Moves past the closing tag of this name, if it stands here.
fn closes(cursor: &mut Cursor<'_>, name: &str) -> bool {
    let start = cursor.at;
    for token in [CLOSE, name, SEPARATOR] {
        if !cursor.eat(token) {
            cursor.at = start;
            return false;
        }
        if token != SEPARATOR {
            cursor.blank();
        }
    }
    true
}

/// Returns the value of an attribute, with its escaped characters restored.
fn attribute<'a>(attributes: &'a str, key: &str) -> Option<Cow<'a, str>> {
    let mut parts = attributes.split('"');
    while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
        if name.trim().strip_suffix('=') == Some(key) {
            let is_plain = !value.contains('&');
            let plain = || value.replace("&quot;", "\"").replace("&amp;", "&");
            return Some(if is_plain { value.into() } else { plain().into() });
        }
    }
    None
}
