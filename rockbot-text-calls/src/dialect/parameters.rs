//! Calls as markup: a tag with the name, and a tag for each argument.

use super::named;
use crate::answer::MalformedKind;
use crate::cursor::Cursor;
use crate::json::push_string;
use crate::tools::{CallSite, Tools};

/// The tags of one kind of markup. Further attributes may stand between a name and the end of a
/// tag.
struct Markup {
    open: &'static str,
    argument: &'static str,
    argument_close: &'static str,
    close: &'static [&'static str],
}

const MARKUPS: [Markup; 8] = [
    // `<function=get_weather><parameter=city>Paris</parameter></function>`
    markup("<function=", "<parameter=", "</parameter>", &["</function>"]),
    // `<invoke name="get_weather"><parameter name="city">Paris</parameter></invoke>`
    markup("<invoke name=", "<parameter name=", "</parameter>", &["</invoke>"]),
    markup(
        "<｜DSML｜invoke name=",
        "<｜DSML｜parameter name=",
        "</｜DSML｜parameter>",
        &["</｜DSML｜invoke>"],
    ),
    // The same under other names: MiniCPM 5, Step 3, Muse, GigaChat 3.5.
    markup("<function name=", "<param name=", "</param>", &["</function>"]),
    markup("<function name=", "<parameter name=", "</parameter>", &["</function>"]),
    markup(
        "<steptml:invoke name=",
        "<steptml:parameter name=",
        "</steptml:parameter>",
        &["</steptml:invoke>"],
    ),
    markup(
        "<atem:invoke name=",
        "<atem:parameter name=",
        "</atem:parameter>",
        &["</atem:invoke>"],
    ),
    markup(
        "<｜GCML｜invoke name=",
        "<｜GCML｜parameter name=",
        "</｜GCML｜parameter>",
        &["</｜GCML｜invoke>"],
    ),
];

const fn markup(
    open: &'static str,
    argument: &'static str,
    argument_close: &'static str,
    close: &'static [&'static str],
) -> Markup {
    Markup {
        open,
        argument,
        argument_close,
        close,
    }
}

/// Parses any of the markups; also JSON between the tags of the call (Llama 3.1).
pub(super) fn read(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let entry = MARKUPS.iter().find_map(|markup| read_as(cursor, tools, markup));
    if entry.is_none() {
        cursor.at = start;
    }
    Some(vec![entry?])
}

fn read_as(cursor: &mut Cursor<'_>, tools: &Tools, markup: &Markup) -> Option<CallSite> {
    let start = cursor.at;
    if !cursor.eat(markup.open) {
        return None;
    }
    let (name, _) = tag(cursor)?;
    cursor.space();
    let outer = std::mem::replace(&mut cursor.closes, markup.close);
    let is_object = cursor.peek() == Some(b'{');
    let mut arguments = if is_object {
        named::arguments(cursor)
    } else {
        arguments(cursor, tools, markup, name)
    };
    cursor.closes = outer;
    cursor.space();
    let closed = cursor.eat_any(markup.close);
    if !closed && !is_object && cursor.rest().is_empty() {
        // The text was cut: more arguments could have followed.
        arguments = arguments.and_then(unless_any);
    }
    // A name alone that is not even closed is prose about the form.
    let said_something = closed || arguments.as_deref() != Ok("{}");
    said_something.then(|| tools.call(name, arguments, start..cursor.at))
}

/// Parses a tag and returns the name in it and its other attributes.
fn tag<'a>(cursor: &mut Cursor<'a>) -> Option<(&'a str, &'a str)> {
    let quoted = cursor.eat_any(&["\"", "'"]);
    let name = cursor.name();
    if quoted && !cursor.eat_any(&["\"", "'"]) || name.is_empty() {
        return None;
    }
    let rest = cursor.head(80);
    let attributes = &rest[..rest.find(['\n', '>'])?];
    cursor.at += attributes.len();
    cursor.eat(">").then_some((name, attributes))
}

/// Returns the arguments of a call that was cut, if it has none yet.
pub(super) fn unless_any(arguments: String) -> Result<String, MalformedKind> {
    if arguments == "{}" {
        Ok(arguments)
    } else {
        Err(MalformedKind::BrokenJson)
    }
}

fn arguments(cursor: &mut Cursor<'_>, tools: &Tools, markup: &Markup, tool: &str) -> Result<String, MalformedKind> {
    let mut out = String::from("{");
    while cursor.eat(markup.argument) {
        cursor
            .spend(markup.argument.len())
            .map_err(|_| MalformedKind::BrokenJson)?;
        let (key, attributes) = tag(cursor).ok_or(MalformedKind::BrokenJson)?;
        let value = value(cursor, markup).ok_or(MalformedKind::BrokenJson)?;
        push_key(key, &mut out);
        tools.argument(tool, key, value, says_text(attributes), &mut out);
        cursor.space();
    }
    out.push('}');
    Ok(out)
}

/// Parses `<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=…>…<｜tool_call_end｜>`.
pub(super) fn step3(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    cursor.eat("<｜tool_call_begin｜>");
    cursor.space();
    if cursor.eat("function") {
        cursor.space();
        cursor.eat("<｜tool_sep｜>");
        cursor.space();
    }
    let Some(entries) = read(cursor, tools) else {
        cursor.at = start;
        return None;
    };
    cursor.space();
    cursor.eat("<｜tool_call_end｜>");
    cursor.space();
    cursor.eat("<｜tool_sep｜>");
    Some(entries)
}

/// Parses the value up to its closing tag, or, without one, up to the next argument or the end of
/// the call. Returns `None`, at the end of the text, for a value that was cut.
fn value<'a>(cursor: &mut Cursor<'a>, markup: &Markup) -> Option<&'a str> {
    let text = cursor.text;
    let start = cursor.at;
    if let Some(value) = character_data(cursor) {
        cursor.eat(markup.argument_close);
        return Some(value);
    }
    let close = cursor.find(markup.argument_close);
    let value = &text[start..close.unwrap_or(text.len())];
    let forgotten = [markup.argument]
        .iter()
        .chain(markup.close)
        .filter_map(|token| value.find(token))
        .min();
    let length = forgotten.unwrap_or(value.len());
    cursor.at = start + length;
    if forgotten.is_none() {
        cursor.eat(markup.argument_close);
    }
    (forgotten.is_some() || close.is_some()).then(|| &value[..length])
}

/// Parses `<![CDATA[…]]>`, which may contain closing tags.
fn character_data<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    let start = cursor.at;
    cursor.space();
    if !cursor.eat("<![CDATA[") {
        cursor.at = start;
        return None;
    }
    let text = cursor.text;
    let from = cursor.at;
    let Some(end) = cursor.find("]]>") else {
        cursor.at = start;
        return None;
    };
    cursor.at = end + "]]>".len();
    cursor.space();
    Some(&text[from..end])
}

/// Returns the type that the tag itself declares: `string="true"` (DeepSeek) or `type="string"`.
fn says_text(attributes: &str) -> Option<bool> {
    let attributes = attributes.trim();
    match attributes {
        "string=\"true\"" | "type=\"string\"" => Some(true),
        _ if attributes.starts_with("string=") || attributes.starts_with("type=") => Some(false),
        _ => None,
    }
}

pub(super) fn push_key(key: &str, out: &mut String) {
    if out.len() > 1 {
        out.push(',');
    }
    push_string(key, out);
    out.push(':');
}
