//! Walks over an answer, line by line, and collects the calls that stand where calls are made.

use std::ops::Range;

use crate::cursor::{Cursor, starts_with};
use crate::fence::Fence;
use crate::tools::{CallSite, Tools};
use crate::{dialect, hallucination, placement};

/// The result of scanning an answer.
#[derive(Debug, Default)]
pub(super) struct ScanResult {
    /// The calls in order, malformed ones included.
    pub(super) sites: Vec<CallSite>,
    /// Byte ranges that a person should not read: in order, not overlapping.
    pub(super) hidden: Vec<Range<usize>>,
    /// Byte offset at which the model began to write a result itself.
    pub(super) hallucinated_from: Option<usize>,
}

impl ScanResult {
    /// Returns the text up to `until` without what is hidden, paragraph by paragraph; unchanged when nothing is.
    pub(super) fn visible_text(&self, text: &str, until: usize) -> String {
        if self.hidden.is_empty() && until == text.len() {
            return text.into();
        }
        let starts = std::iter::once(0).chain(self.hidden.iter().map(|span| span.end));
        let ends = self.hidden.iter().map(|span| span.start).chain(std::iter::once(until));
        let pieces = starts.zip(ends).filter_map(|(start, end)| text.get(start..end));
        let paragraphs: Vec<_> = pieces.map(str::trim).filter(|piece| !piece.is_empty()).collect();
        paragraphs.join("\n\n")
    }
}

/// A group of calls that directly follow each other.
struct CallGroup {
    span: Range<usize>,
    sites: Vec<CallSite>,
    /// Set when a call has no marker, so that only its position shows that it is one.
    unmarked: bool,
}

pub(super) fn scan(text: &str, tools: &Tools) -> ScanResult {
    let end = hallucination::length_without_end(text);
    let start = text.len() - text.trim_start().len();
    let mut scan = Scanner {
        cursor: Cursor::new(&text[..end]),
        tools,
        prose_from: 0,
        quoted: false,
        found: ScanResult::default(),
    };
    scan.cursor.at = start.min(end);
    while !scan.cursor.rest().is_empty() && scan.found.hallucinated_from.is_none() && !scan.cursor.is_spent() {
        scan.line();
    }
    // End-of-turn tokens after the last call are hidden with it.
    if let Some(last) = scan.found.hidden.last_mut().filter(|last| last.end == end) {
        last.end = text.len();
    }
    scan.found
}

struct Scanner<'a, 't> {
    cursor: Cursor<'a>,
    tools: &'t Tools,
    /// Byte offset after the last call.
    prose_from: usize,
    /// Set once the answer quoted a call.
    quoted: bool,
    found: ScanResult,
}

impl Scanner<'_, '_> {
    /// Scans the line at the cursor, and moves past it and the calls in it.
    fn line(&mut self) {
        let start = self.cursor.at;
        let text = self.cursor.text;
        let line = line_at(text, start);
        let behind = (start + line.len() + 1).min(text.len());
        if let Some(group) = self.group(true) {
            let end = group.span.end;
            if !self.accepted(group, false) {
                self.within(end);
            }
        } else if let Some((fence, _)) = Fence::opened_by(line) {
            self.cursor.at = fence.end(text, behind).1;
        } else if let Some(close) = thought(line) {
            let rest = &text[start..];
            self.cursor.at = rest.find(close).map_or(text.len(), |at| start + at + close.len());
            self.cursor.space();
        } else if self.is_result(line) {
            self.found.hallucinated_from = Some(start);
        } else {
            self.cursor.at = start;
            self.within(start);
        }
    }

    /// Scans the middle of a line from `from` on, and moves past the line.
    fn within(&mut self, from: usize) {
        let text = self.cursor.text;
        let line = line_at(text, from);
        let mut in_code = false;
        let mut passed = 0;
        for (at, char) in line.char_indices() {
            if char == '`' {
                in_code = !in_code;
            }
            if at < passed || in_code || !matches!(char, '<' | '[') {
                continue;
            }
            let here = from + at;
            self.cursor.at = here;
            if starts_with(&line[at..], "</think>") {
                self.forget();
            } else if at > 0
                && placement::goes_on(&line[..at], &line[at..])
                && let Some(group) = self.group(false)
            {
                passed = group.span.end - from;
                if self.accepted(group, true) {
                    return;
                }
            }
        }
        let behind = from + line.len().max(passed + line_at(text, from + passed).len());
        self.cursor.at = (behind + 1).min(text.len());
    }

    /// Parses all calls at the cursor that directly follow each other.
    fn group(&mut self, at_line_start: bool) -> Option<CallGroup> {
        let start = self.cursor.at;
        let mut group = CallGroup {
            span: start..start,
            sites: Vec::new(),
            unmarked: false,
        };
        loop {
            let on_new_line =
                at_line_start && self.cursor.text[..self.cursor.at].ends_with('\n') || start == self.cursor.at;
            let marked = dialect::read(&mut self.cursor, self.tools);
            let read = match marked {
                None if at_line_start && on_new_line => {
                    let read = dialect::known_list(&mut self.cursor, self.tools)
                        .or_else(|| dialect::name_line(&mut self.cursor, self.tools));
                    group.unmarked |= read.is_some();
                    read
                }
                marked => marked,
            };
            let Some(read) = read else { break };
            group.sites.extend(read);
            group.span.end = self.cursor.at;
            self.between();
        }
        self.cursor.at = group.span.end;
        (!group.sites.is_empty()).then(|| {
            self.tokens();
            group.span.end = self.cursor.at;
            group
        })
    }

    /// Moves over separators between two calls of a group.
    fn between(&mut self) {
        self.tokens();
        dialect::separators(&mut self.cursor);
    }

    /// Moves over ends of turns and stray closing tokens.
    fn tokens(&mut self) {
        let mut end = self.cursor.at;
        loop {
            self.cursor.space();
            match hallucination::end_of_turn(self.cursor.rest()) {
                Some(token) => self.cursor.at += token.len(),
                None if dialect::stray_close(&mut self.cursor) => {}
                None => break,
            }
            end = self.cursor.at;
        }
        self.cursor.at = end;
    }

    /// Accepts the calls if their position is one where calls are made, and moves past them.
    fn accepted(&mut self, group: CallGroup, in_line: bool) -> bool {
        let text = self.cursor.text;
        let after = &text[group.span.end..];
        let next = after.trim_start();
        let hallucinated = hallucination::begins_behind_calls(next);
        let alone = next.is_empty() || after[..after.len() - next.len()].contains('\n');
        let followed = !next.is_empty() && !hallucinated;
        let introduced = placement::introduces(&text[self.prose_from..group.span.start]);
        let broken = group.sites.iter().all(|entry| entry.call.is_err());

        let quoted = introduced && (followed || self.quoted) || followed && placement::encloses(next);
        let weak = followed && (broken || in_line || group.unmarked) || introduced && group.unmarked;
        self.quoted |= quoted;
        if quoted || weak || !alone && !hallucinated {
            return false;
        }
        let at = text.len() - next.len();
        self.found.hallucinated_from = hallucinated.then_some(at);
        self.cursor.at = at;
        self.prose_from = at;
        self.found.hidden.push(group.span);
        self.found.sites.extend(group.sites);
        true
    }

    fn is_result(&self, line: &str) -> bool {
        if self.found.sites.is_empty() {
            let before = &self.cursor.text[self.prose_from..self.cursor.at];
            hallucination::begins(line) && !placement::introduces(before)
        } else {
            hallucination::begins_behind_calls(line)
        }
    }

    /// Discards the calls so far: they stood in a reasoning block whose opening token is missing.
    fn forget(&mut self) {
        self.found.sites.clear();
        self.found.hidden.clear();
    }
}

fn line_at(text: &str, start: usize) -> &str {
    let rest = &text[start..];
    &rest[..rest.find('\n').unwrap_or(rest.len())]
}

/// Opening and closing tokens of reasoning blocks, which some servers leave in the text.
pub(super) const THOUGHTS: [(&str, &str); 4] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("[THINK]", "[/THINK]"),
];

/// Returns the token that closes the reasoning block that a line opens.
fn thought(line: &str) -> Option<&'static str> {
    THOUGHTS
        .into_iter()
        .find(|(open, _)| starts_with(line, open))
        .map(|(_, close)| close)
}
