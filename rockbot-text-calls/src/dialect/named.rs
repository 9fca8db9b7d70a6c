//! Calls as a name, a token, and JSON arguments.

use crate::answer::MalformedKind;
use crate::call_object::of_text;
use crate::cursor::Cursor;
use crate::json::{Style, decoded};
use crate::tools::{CallSite, Tools};

/// Parses arguments: an object, a string that contains one, or nothing.
pub(super) fn arguments(cursor: &mut Cursor<'_>) -> Result<String, MalformedKind> {
    cursor.space();
    match cursor.peek() {
        Some(b'{') => match cursor.object_in_any_style() {
            Ok((object, _)) => Ok(object),
            Err(_) => {
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

/// `<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{…}<｜tool▁call▁end｜>`, and V3's and R1's longer form with
/// `function` before the separator and a fence around the arguments.
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

/// Parses, after `[TOOL_CALLS]`, `get_weather{…}`, `get_weather[ARGS]{…}` and `get_weather[CALL_ID]x[ARGS]{…}`.
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

/// `call:get_weather{city:<|"|>Paris<|"|>}`
pub(super) fn gemma(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    if !cursor.eat("call:") {
        return None;
    }
    let name = cursor.name();
    if cursor.peek() != Some(b'{') {
        cursor.at = start;
        return None;
    }
    let mut object = String::new();
    let arguments = match cursor.object(Style::Gemma, &mut object) {
        Ok(_) => Ok(object),
        Err(_) => {
            cursor.skip_to_end();
            Err(MalformedKind::BrokenJson)
        }
    };
    Some(vec![tools.call(name, arguments, start..cursor.at)])
}
