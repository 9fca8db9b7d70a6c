//! Answers that are nothing but calls, in forms that count only then: a bare name, Python, and
//! any form in a fence or in backticks.

use crate::fence::Fence;
use crate::scan::{ScanResult, all_calls};
use crate::tools::{CallSite, Tools};
use crate::unmarked::plain;
use crate::{hallucination, thought};

/// Parses the answer if it consists of calls only, reasoning before them excepted.
pub(super) fn parse(text: &str, tools: &Tools) -> Option<ScanResult> {
    let thought = thought::end(text);
    let start = text.len() - text[thought..].trim_start().len();
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
        hidden: std::iter::once(thought..text.len()).collect(),
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
