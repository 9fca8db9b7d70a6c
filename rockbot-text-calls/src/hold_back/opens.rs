//! Decides for a position of a text that goes on to arrive whether a call begins there.

use super::{Opens, object};
use crate::cursor::{name_at, starts_with};
use crate::fence::Fence;
use crate::scan::{MAX_WORDS_IN_FENCE, may_hold_calls};
use crate::thought::THOUGHTS;
use crate::tools::Tools;
use crate::{dialect, hallucination};

const SEED: &str = "tool_call_name";
const MARKS: [char; 5] = ['`', '*', '"', ' ', '\t'];

/// Decides in a reasoning block, which `close` ends, or any closing token.
pub(super) fn in_thought(text: &str, close: &str, ends_by_any: bool) -> Opens {
    let mut closes = THOUGHTS
        .iter()
        .map(|(_, close)| *close)
        .filter(|_| ends_by_any)
        .chain([close]);
    if closes.clone().any(|close| text.starts_with(close)) {
        return Opens::No;
    }
    let mut tokens = dialect::SECTIONS_IN_THOUGHTS
        .into_iter()
        .chain([dialect::CALL_IN_THOUGHTS]);
    if tokens.clone().any(|token| text.starts_with(token)) {
        return Opens::Yes;
    }
    Opens::unclear_if(closes.any(|close| is_beginning(text, close)) || tokens.any(|token| is_beginning(text, token)))
}

/// Decides in the middle of a line.
pub(super) fn in_line(text: &str, tools: &Tools) -> Opens {
    match text.as_bytes().first() {
        Some(b'{') => object::opens(text, tools),
        Some(b'[') => token(text).or_else(|| object::opens(text, tools)),
        Some(b'<' | b']' | b'>') => token(text),
        _ => Opens::No,
    }
}

/// Decides at the start of a line that opens no fence. `alone` if nothing but reasoning stands
/// before it.
pub(super) fn at_line_start(text: &str, alone: bool, tools: &Tools) -> Opens {
    // A whole answer may stand in backticks.
    let inner = if alone {
        text.trim_start_matches('`').trim_start()
    } else {
        text
    };
    token(inner)
        .or_else(|| in_line(inner, tools))
        .or_else(|| decorated(text))
        .or_else(|| named(inner, alone, tools))
        .or_else(|| bare_gemma(inner))
        .or_else(|| bare_gigachat(inner))
        .or_else(|| recipient(inner))
        .or_else(|| leaked(inner, alone))
}

/// Decides for a fence, which may hold calls only. `alone` if nothing but reasoning stands before
/// it.
pub(super) fn in_fence(text: &str, (fence, info): (Fence, &str), alone: bool, tools: &Tools) -> Opens {
    let content = text.find('\n').map_or("", |end| &text[end + 1..]);
    if !alone && !may_hold_calls(info) {
        return Opens::No;
    }
    let inner = content.trim_start();
    let first = match inner {
        "" => Opens::Unclear,
        // Any calls may follow in backticks or in the next fence.
        _ if inner.starts_with(['`', '~']) => Opens::Yes,
        inner => at_line_start(inner, true, tools),
    };
    first.or_else(|| {
        let mut lines = content.lines();
        if lines
            .clone()
            .any(|line| starts_with(line.trim_start_matches(MARKS), SEED))
        {
            return Opens::Yes;
        }
        let closed = lines.any(|line| fence.is_closed_by(line));
        Opens::unclear_if(!closed && may_hold_calls(info) && content.len() < MAX_WORDS_IN_FENCE + 32)
    })
}

/// Decides whether a marker begins here.
pub(super) fn token(text: &str) -> Opens {
    let mut thoughts = THOUGHTS.iter().flat_map(|(open, close)| [open, close]);
    let mut unclear = thoughts.any(|token| is_beginning(text, token));
    for opener in dialect::openers().chain(hallucination::openers()) {
        if starts_with(text, opener) {
            return Opens::Yes;
        }
        unclear |= is_beginning(text, opener);
    }
    Opens::unclear_if(unclear)
}

/// Decides whether the two lines of the original agent begin here, in backticks or in bold.
fn decorated(text: &str) -> Opens {
    let inner = text.trim_start_matches(MARKS);
    if inner.len() == text.len() {
        return Opens::No;
    }
    if starts_with(inner, SEED) {
        Opens::Yes
    } else {
        Opens::unclear_if(is_beginning(inner, SEED))
    }
}

/// Decides whether `call:` and an object begin here.
fn bare_gemma(text: &str) -> Opens {
    const CALL: &str = "call:";
    if !starts_with(text, CALL) {
        return Opens::unclear_if(is_beginning(text, CALL));
    }
    let is_part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.' | ':' | '/');
    let behind = text[CALL.len()..].trim_start_matches(is_part);
    if behind.starts_with('{') {
        Opens::Yes
    } else {
        Opens::unclear_if(behind.is_empty())
    }
}

/// Decides whether `function call` and an object begin here.
fn bare_gigachat(text: &str) -> Opens {
    const CALL: &str = "function call";
    let Some(behind) = text.strip_prefix(CALL) else {
        return Opens::unclear_if(is_beginning(text, CALL));
    };
    match behind.trim_start() {
        "" => Opens::Unclear,
        behind if behind.starts_with(['{', '[']) => Opens::Yes,
        _ => Opens::No,
    }
}

/// Decides whether the header of a message begins here, at its recipient: the prompt may hold the
/// rest.
fn recipient(text: &str) -> Opens {
    const TO: &str = "to=";
    if !text.starts_with(TO) {
        return Opens::unclear_if(is_beginning(text, TO));
    }
    let behind = text[TO.len() + name_at(&text[TO.len()..]).len()..].trim_start_matches(is_blank);
    if behind.starts_with("<|") {
        Opens::Yes
    } else {
        Opens::unclear_if(is_beginning(behind, "<|"))
    }
}

/// Decides whether the thoughts of gpt-oss begin here, without special tokens.
fn leaked(text: &str, alone: bool) -> Opens {
    if alone && dialect::is_leaked(text) {
        Opens::Yes
    } else {
        Opens::unclear_if(alone && "analysis".starts_with(text))
    }
}

/// Decides whether the line may be the name of a tool, or a Python call: in a list, or as the
/// whole answer.
fn named(text: &str, alone: bool, tools: &Tools) -> Opens {
    let listed = text.strip_prefix('[').map(str::trim_start);
    let line = listed.unwrap_or_else(|| text.trim_start_matches(is_blank));
    if line.is_empty() {
        return Opens::Unclear;
    }
    let python = listed.is_some() || alone;
    let may_be_name = |known: &str| {
        let same = line.len().min(known.len());
        let behind = known
            .get(..same)
            .filter(|known| starts_with(line, known))
            .map(|_| &line[same..]);
        behind.is_some_and(|behind| could_follow(behind, python, listed.is_none()))
    };
    // The model may spell a name in its own way.
    let (name, behind) = line.split_at(name_at(line).trim_end_matches(':').len());
    let may_be_spelled = || match behind {
        "" => tools.may_be_spelled(name),
        _ => tools.spelled(name).is_some() && could_follow(behind, python, listed.is_none()),
    };
    match tools.names().any(may_be_name) || may_be_spelled() {
        false => Opens::No,
        true if line.contains(['(', '{']) => Opens::Yes,
        true => Opens::Unclear,
    }
}

fn is_blank(char: char) -> bool {
    char.is_whitespace() && char != '\n'
}

/// Returns `true` if more text could complete `text` to `opener`.
fn is_beginning(text: &str, opener: &str) -> bool {
    text.len() < opener.len() && starts_with(opener, text)
}

/// Returns `true` if a result that the model imagines begins here, or may begin.
fn may_be_result(text: &str) -> bool {
    hallucination::openers().any(|opener| starts_with(text, opener) || is_beginning(text, opener))
}

/// Returns `true` if `text` can follow a name: the parenthesis of a call, the end of the turn, a
/// line end and an object, or an imagined result.
fn could_follow(text: &str, python: bool, object: bool) -> bool {
    match text.trim_start() {
        "" => true,
        rest if rest.starts_with('{') => object && text.contains('\n'),
        rest if rest.starts_with(':') => object && matches!(rest[1..].trim_start().chars().next(), None | Some('{')),
        rest => python && (text.starts_with('(') || rest.starts_with('<') || may_be_result(rest)),
    }
}
