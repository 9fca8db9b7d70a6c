//! Answers that are nothing but calls, in forms that count only then: plain JSON, a bare name, Python, and any
//! form in a fence or in backticks.

use crate::answer::MalformedKind;
use crate::cursor::Cursor;
use crate::fence::Fence;
use crate::scan::{ScanResult, scan};
use crate::tools::{CallSite, Flaw, Tools};
use crate::{call_object, dialect, hallucination};

/// Parses the answer if it consists of calls only.
pub(super) fn parse(text: &str, tools: &Tools) -> Option<ScanResult> {
    let start = text.len() - text.trim_start().len();
    let end = hallucination::length_without_end(text);
    let answer = text.get(start..end)?;
    let mut sites = match answer.as_bytes().first()? {
        b'`' => wrapped(answer, tools),
        _ => plain(answer, tools),
    }?;
    for entry in &mut sites {
        entry.span = entry.span.start + start..entry.span.end + start;
    }
    Some(ScanResult {
        sites,
        hidden: std::iter::once(0..text.len()).collect(),
        hallucinated_from: None,
    })
}

/// Parses calls in fences, or in one pair of backticks.
fn wrapped(text: &str, tools: &Tools) -> Option<Vec<CallSite>> {
    let mut sites = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let line = text[at..].split_inclusive('\n').next().unwrap_or_default();
        if line.trim().is_empty() {
            at += line.len();
            continue;
        }
        let (inner, next) = if let Some((fence, _)) = Fence::opened_by(line) {
            let content = at + line.len();
            let (end, next) = fence.end(text, content);
            (content..end, next)
        } else {
            let inner = text.strip_prefix('`').and_then(|text| text.strip_suffix('`'));
            (
                1..1 + inner.filter(|inner| at == 0 && !inner.contains('`'))?.len(),
                text.len(),
            )
        };
        let before = inner.start;
        for mut entry in all_calls(&text[inner], tools)? {
            entry.span = entry.span.start + before..entry.span.end + before;
            sites.push(entry);
        }
        at = next;
    }
    (!sites.is_empty()).then_some(sites)
}

/// Returns the calls of a text that contains nothing else.
fn all_calls(text: &str, tools: &Tools) -> Option<Vec<CallSite>> {
    if let Some(sites) = plain(text, tools) {
        return Some(sites);
    }
    let found = scan(text, tools);
    let nothing_else = found.hallucinated_from.is_none() && found.visible_text(text, text.len()).trim().is_empty();
    (nothing_else && !found.sites.is_empty()).then_some(found.sites)
}

/// Parses JSON objects, lists of them, Python calls, or a name that cannot be a word.
fn plain(text: &str, tools: &Tools) -> Option<Vec<CallSite>> {
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
                Some(entry) => sites.push(entry),
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
