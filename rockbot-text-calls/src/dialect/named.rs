//! Calls as a name, a token, and JSON arguments.

use crate::answer::MalformedKind;
use crate::call_object::of_text;
use crate::cursor::{Cursor, starts_with};
use crate::json::{Style, decoded};
use crate::tools::{CallSite, Tools};

/// Parses arguments: an object, a string that contains one, or nothing.
pub(super) fn arguments(cursor: &mut Cursor<'_>) -> Result<String, MalformedKind> {
    cursor.space();
    match cursor.peek() {
        Some(b'{') => match cursor.object_in_any_style() {
            Ok((object, _)) if cursor.cut == 0 => Ok(object),
            _ => {
                cursor.skip_to_end();
                Err(MalformedKind::BrokenJson)
            }
        },
        Some(b'"') => {
            let mut text = String::new();
            match cursor.value(Style::Json, &mut text) {
                Ok(()) => of_text(&decoded(&text).unwrap_or_default()),
                Err(_) => {
                    cursor.skip_to_end();
                    Err(MalformedKind::BrokenJson)
                }
            }
        }
        None if !cursor.closes.is_empty() => Err(MalformedKind::BrokenJson),
        _ if cursor.is_at_end() => Ok("{}".into()),
        _ => {
            cursor.skip_to_end();
            Err(MalformedKind::ArgumentsNotObject)
        }
    }
}

/// `<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`
pub(super) fn kimi(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    between(cursor, tools, "<|tool_call_begin|>", &["<|tool_call_end|>"], |cursor| {
        let id = cursor.name();
        cursor.space();
        let number = |(_, number): &(&str, &str)| number.bytes().all(|byte| byte.is_ascii_digit());
        let name = id.rsplit_once(':').filter(number).map_or(id, |(name, _)| name);
        cursor.eat("<|tool_call_argument_begin|>").then_some(name)
    })
}

/// `<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{…}<｜tool▁call▁end｜>`, and V3's and R1's longer
/// form with `function` before the separator and a fence around the arguments.
pub(super) fn deepseek(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    const FORMS: [(&str, &str, &[&str]); 3] = [
        ("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", &["<｜tool▁call▁end｜>"]),
        ("<｜tool_call_begin｜>", "<｜tool_sep｜>", &["<｜tool_call_end｜>"]),
        ("<|tool▁call▁begin|>", "<|tool▁sep|>", &["<|tool▁call▁end|>"]),
    ];
    FORMS.iter().find_map(|(open, separator, closes)| {
        between(cursor, tools, open, closes, |cursor| {
            let mut name = cursor.name();
            cursor.space();
            if !cursor.eat(separator) {
                return None;
            }
            if name == "function" {
                name = cursor.name();
                cursor.space();
                cursor.eat("```json");
                cursor.eat("```");
            }
            Some(name)
        })
    })
}

fn between(
    cursor: &mut Cursor<'_>,
    tools: &Tools,
    open: &str,
    closes: &'static [&'static str],
    head: impl for<'a> FnOnce(&mut Cursor<'a>) -> Option<&'a str>,
) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    if !cursor.eat(open) {
        return None;
    }
    cursor.space();
    let Some(name) = head(cursor).filter(|name| !name.is_empty()) else {
        cursor.at = start;
        return None;
    };
    let outer = std::mem::replace(&mut cursor.closes, closes);
    let arguments = arguments(cursor);
    cursor.closes = outer;
    cursor.space();
    cursor.eat("```");
    cursor.space();
    cursor.eat_any(closes);
    Some(vec![tools.call(name, arguments, start..cursor.at)])
}

/// Parses, after `[TOOL_CALLS]`, `get_weather{…}`, `get_weather[ARGS]{…}` and
/// `get_weather[CALL_ID]x[ARGS]{…}`.
pub(super) fn mistral(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    cursor.eat("[TOOL_CALLS]");
    let name = cursor.name();
    cursor.space();
    if cursor.eat("[CALL_ID]") {
        cursor.name();
        cursor.space();
    }
    let marked = cursor.eat("[ARGS]");
    cursor.space();
    if name.is_empty() || cursor.peek() != Some(b'{') && !(marked && cursor.rest().is_empty()) {
        cursor.at = start;
        return None;
    }
    let arguments = arguments(cursor);
    Some(vec![tools.call(name, arguments, start..cursor.at)])
}

/// Parses, in any wrapper, `get_weather{…}`, also with the word `function` or a line end before
/// the object.
pub(super) fn before_object(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let mut name = cursor.name();
    cursor.space();
    if name == "function" && cursor.peek() != Some(b'{') {
        name = cursor.name();
        cursor.space();
    }
    if cursor.peek() != Some(b'{') || tools.resolve(name).is_none() {
        cursor.at = start;
        return None;
    }
    let arguments = arguments(cursor);
    Some(vec![tools.call(name, arguments, start..cursor.at)])
}

/// Parses PLaMo's request: the name between tokens, then the arguments between tokens.
pub(super) fn plamo(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    const ARGUMENTS_END: &str = "<|plamo:end_tool_arguments:plamo|>";
    let entries = between(
        cursor,
        tools,
        "<|plamo:begin_tool_request:plamo|>",
        &[ARGUMENTS_END],
        |cursor| {
            cursor.eat("<|plamo:begin_tool_name:plamo|>");
            let name = cursor.name();
            cursor.eat("<|plamo:end_tool_name:plamo|>");
            cursor.space();
            cursor.eat("<|plamo:begin_tool_arguments:plamo|>").then_some(name)
        },
    )?;
    cursor.space();
    cursor.eat("<|plamo:end_tool_request:plamo|>");
    Some(entries)
}

/// Parses [`gemma`]'s form without a wrapper, whose tokens servers may have removed. Only a known
/// tool counts.
pub(crate) fn bare_gemma(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    if starts_with(cursor.rest(), "call:") {
        known_gemma(cursor, tools)
    } else {
        None
    }
}

/// Parses [`gemma`]'s form if it calls a known tool.
pub(super) fn known_gemma(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let entries = gemma(cursor, tools).filter(|entries| entries.iter().all(|entry| entry.call.is_ok()));
    if entries.is_none() {
        cursor.at = start;
    }
    entries
}

/// Parses `call:get_weather{city:<|"|>Paris<|"|>}`, with other quotes in FunctionGemma. The word
/// may be missing, or stand behind a second colon.
pub(super) fn gemma(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    cursor.eat(":");
    cursor.eat("call:");
    let name = cursor.name();
    if name.is_empty() || cursor.peek() != Some(b'{') {
        cursor.at = start;
        return None;
    }
    let mut object = String::new();
    cursor.cut = 0;
    let arguments = match cursor.object(Style::Gemma, &mut object) {
        Ok(_) if cursor.cut == 0 => Ok(object),
        _ => {
            cursor.skip_to_end();
            Err(MalformedKind::BrokenJson)
        }
    };
    Some(vec![tools.call(name, arguments, start..cursor.at)])
}
