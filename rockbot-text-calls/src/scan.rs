//! Walks over an answer, line by line, and collects the calls that stand where calls are made.

use std::ops::Range;

use crate::announcement::{announces, names_step};
use crate::cursor::Cursor;
use crate::fence::Fence;
use crate::tools::{CallSite, Tools};
use crate::unmarked::{self, plain};
use crate::{dialect, hallucination, placement, thought};

/// The result of scanning an answer.
#[derive(Debug, Default)]
pub(super) struct ScanResult {
    /// The calls in order, malformed ones included.
    pub(super) sites: Vec<CallSite>,
    /// Byte ranges that a person should not read: in order, not overlapping.
    pub(super) hidden: Vec<Range<usize>>,
    /// Byte offset where the model began to write a result itself.
    pub(super) hallucinated_from: Option<usize>,
}

impl ScanResult {
    /// Returns the text up to `until` without the hidden parts, paragraph by paragraph; unchanged
    /// when nothing is hidden.
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
    /// Byte ranges of words within the span that stay visible, in order: before the calls in a fence,
    /// or in messages of their own.
    prose: Vec<Range<usize>>,
    /// Set when a call has no marker, or stands in a fence, so that only its position shows that it
    /// is one.
    unmarked: bool,
    /// Set when the marker is a token that people do not type.
    special: bool,
}

pub(super) fn scan(text: &str, tools: &Tools) -> ScanResult {
    scan_from(text, tools, false)
}

/// Returns the calls of a text in a fence or in backticks, if it contains nothing else.
pub(super) fn all_calls(text: &str, tools: &Tools) -> Option<Vec<CallSite>> {
    if let Some(sites) = plain(text, tools) {
        return Some(sites);
    }
    let found = scan_from(text, tools, true);
    let nothing_else = found.hallucinated_from.is_none() && found.visible_text(text, text.len()).trim().is_empty();
    (nothing_else && !found.sites.is_empty()).then_some(found.sites)
}

fn scan_from(text: &str, tools: &Tools, in_fence: bool) -> ScanResult {
    let end = hallucination::length_without_end(text);
    let start = text.len() - text.trim_start().len();
    let mut scan = Scanner {
        cursor: Cursor::new(&text[..end]),
        tools,
        prose_from: 0,
        quoted: false,
        in_fence,
        found: ScanResult::default(),
    };
    scan.cursor.at = start.min(end);
    while !scan.cursor.rest().is_empty() && scan.found.hallucinated_from.is_none() && !scan.cursor.is_spent() {
        scan.line();
    }
    // End-of-turn tokens after the last call, and after words behind it, are hidden with it.
    if !scan.found.hidden.is_empty() && scan.found.hallucinated_from.is_none() {
        scan.found.hidden.push(end..text.len());
    }
    scan.found
}

struct Scanner<'a, 't> {
    cursor: Cursor<'a>,
    tools: &'t Tools,
    /// Byte offset after the last call, or the last reasoning block.
    prose_from: usize,
    /// Set once the answer quoted a call.
    quoted: bool,
    /// Set if the text stands in a fence, so that fences in it are not looked into.
    in_fence: bool,
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
        } else if let Some(settled) = self.settled() {
            self.cursor.at = settled;
            self.prose_from = settled;
        } else if let Some(close) = thought::opened_by(line) {
            self.thought(close);
        } else if self.is_result(line) {
            self.found.hallucinated_from = Some(start);
        } else {
            self.cursor.at = start;
            self.within(start);
        }
    }

    /// Returns the end of the messages without a call that begin at the cursor. Another form can only
    /// stand in the words of the last message, which are not among them.
    fn settled(&mut self) -> Option<usize> {
        let start = self.cursor.at;
        let framed = dialect::framed(&mut self.cursor, self.tools);
        self.cursor.at = start;
        framed.map(|framed| framed.settled).filter(|settled| *settled > start)
    }

    /// Moves past the reasoning block at the cursor. Only the section of calls that ends the answer
    /// counts in it.
    fn thought(&mut self, close: &'static str) {
        let text = self.cursor.text;
        let start = self.cursor.at;
        let end = self.cursor.find(close).unwrap_or(text.len());
        let thoughts = &text[start..end];
        let sections = dialect::SECTIONS_IN_THOUGHTS
            .iter()
            .filter_map(|token| thoughts.rfind(token));
        if let Some(section) = sections.max().or_else(|| thoughts.find(dialect::CALL_IN_THOUGHTS)) {
            self.cursor.at = start + section;
            let group = self.group(false);
            if let Some(group) = group.filter(|group| text[group.span.end..].trim().is_empty()) {
                self.keep(group);
                self.cursor.at = text.len();
                return;
            }
        }
        self.cursor.at = text.len().min(end + close.len());
        self.cursor.space();
        self.prose_from = self.cursor.at;
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
            if self.cursor.is_spent() {
                break;
            }
            if at < passed || in_code || !matches!(char, '<' | '[' | '{' | ']' | '>') {
                continue;
            }
            let here = from + at;
            self.cursor.at = here;
            if let Some(close) = thought::closed_by(&line[at..]) {
                self.forget();
                // The answer itself begins here.
                self.cursor.at = here + close.len();
                self.cursor.space();
                self.prose_from = self.cursor.at;
                // Running out shows at the next line.
                let _ = self.cursor.spend(line.len());
                return;
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
        let special = dialect::is_special(self.cursor.rest());
        let mut group = CallGroup {
            span: start..start,
            sites: Vec::new(),
            prose: Vec::new(),
            unmarked: false,
            special,
        };
        let framed = dialect::framed(&mut self.cursor, self.tools);
        if let Some(framed) = framed.filter(|framed| !framed.sites.is_empty()) {
            group.span.end = self.cursor.at;
            group.sites = framed.sites;
            group.prose = framed.words;
        }
        self.cursor.at = group.span.end;
        loop {
            let on_new_line =
                at_line_start && self.cursor.text[..self.cursor.at].ends_with('\n') || start == self.cursor.at;
            let read = dialect::read(&mut self.cursor, self.tools).or_else(|| {
                let read = self.unmarked(at_line_start && on_new_line, &mut group.prose);
                group.unmarked |= read.is_some();
                read
            });
            let Some(read) = read else { break };
            group.sites.extend(read);
            group.span.end = self.cursor.at;
            self.between();
        }
        self.cursor.at = group.span.end;
        (!group.sites.is_empty()).then(|| {
            self.tokens();
            if special && let Some(close) = thought::closed_by(self.cursor.rest().trim_start()) {
                self.cursor.space();
                self.cursor.at += close.len();
            }
            group.span.end = self.cursor.at;
            group
        })
    }

    /// Parses a call without a marker at the cursor. In the middle of a line that is JSON only.
    fn unmarked(&mut self, at_line_start: bool, prose: &mut Vec<Range<usize>>) -> Option<Vec<CallSite>> {
        let cursor = &mut self.cursor;
        let tools = self.tools;
        match cursor.peek()? {
            b'{' => unmarked::json(cursor, tools),
            b'[' => {
                unmarked::json(cursor, tools).or_else(|| dialect::known_list(cursor, tools).filter(|_| at_line_start))
            }
            _ if !at_line_start => None,
            b'`' | b'~' if Fence::opened_by(line_at(cursor.text, cursor.at)).is_some() => self.fenced(prose),
            b'`' | b'*' => dialect::decorated(cursor, tools),
            b'c' | b'C' => dialect::bare_gemma(cursor, tools).or_else(|| dialect::name_line(cursor, tools)),
            b'f' => unmarked::gigachat(cursor, tools).or_else(|| dialect::name_line(cursor, tools)),
            _ => dialect::name_line(cursor, tools),
        }
    }

    /// Parses the calls in the fence at the cursor, which must end the answer. Prose may stand before
    /// them.
    fn fenced(&mut self, prose: &mut Vec<Range<usize>>) -> Option<Vec<CallSite>> {
        let text = self.cursor.text;
        let start = self.cursor.at;
        let line = line_at(text, start);
        let (fence, _) = Fence::opened_by(line).filter(|(_, info)| !self.in_fence && may_hold_calls(info))?;
        let content = (start + line.len() + 1).min(text.len());
        let (end, next) = fence.end(text, content);
        let rest = text[next..].trim_start();
        let ends =
            rest.is_empty() || Fence::opened_by(line_at(rest, 0)).is_some() || hallucination::begins_behind_calls(rest);
        self.cursor.spend(next - start).ok().filter(|()| ends)?;
        let inner = &text[content..end];
        let (sites, words) = all_calls(inner, self.tools)
            .map(|sites| (sites, None))
            .or_else(|| calls_behind_words(inner, self.tools))?;
        prose.extend(words.map(|words| content..content + words));
        self.cursor.at = next;
        Some(shifted(sites, content))
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
        let alone = next.is_empty()
            || after[..after.len() - next.len()].contains('\n')
            || group.special && !placement::continues(after);
        let followed = !next.is_empty() && !hallucinated;
        let before = &text[self.prose_from..group.span.start];
        let introduced = placement::introduces(before);
        let broken = group.sites.iter().all(|entry| entry.call.is_err());

        let quoted = introduced && (followed || self.quoted) || followed && placement::encloses(next);
        let weak =
            followed && (broken || in_line && !group.special || group.unmarked) || group.unmarked && !announces(before);
        // Fences that show calls are no sign that calls outside of them are shown, too.
        self.quoted |= quoted && !text[group.span.start..].starts_with(['`', '~']);
        if quoted || weak || !alone && !hallucinated {
            return false;
        }
        let at = text.len() - next.len();
        self.found.hallucinated_from = hallucinated.then_some(at);
        self.cursor.at = at;
        self.prose_from = at;
        self.keep(group);
        true
    }

    fn keep(&mut self, group: CallGroup) {
        let CallGroup { span, sites, prose, .. } = group;
        let starts = std::iter::once(span.start).chain(prose.iter().map(|words| words.end));
        let ends = prose.iter().map(|words| words.start).chain(std::iter::once(span.end));
        let hidden = starts.zip(ends).map(|(start, end)| start..end);
        self.found.hidden.extend(hidden.filter(|range| !range.is_empty()));
        self.found.sites.extend(sites);
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

/// Maximum number of bytes of words before the calls in a fence.
pub(super) const MAX_WORDS_IN_FENCE: usize = 400;

/// Returns the calls that end the content of a fence, and the length of the words before them.
fn calls_behind_words(text: &str, tools: &Tools) -> Option<(Vec<CallSite>, Option<usize>)> {
    let found = scan_from(text, tools, true);
    let words = found.sites.first()?.span.start;
    let ends = text[found.hidden.last()?.end..].trim().is_empty();
    let seed = text[words..]
        .trim_start_matches(['`', '*'])
        .starts_with("tool_call_name");
    let announced = announces(&text[..words]) || names_step(&text[..words]);
    (ends && seed && announced && words <= MAX_WORDS_IN_FENCE && found.hallucinated_from.is_none())
        .then_some((found.sites, Some(words)))
}

/// Returns `true` if a fence with this info string can hold calls, and is not a piece of code.
pub(super) fn may_hold_calls(info: &str) -> bool {
    let word = info.split_whitespace().next().unwrap_or_default();
    let short = info.len() < 64;
    [
        "",
        "json",
        "jsonc",
        "xml",
        "html",
        "text",
        "txt",
        "plaintext",
        "tool",
        "tool_call",
        "tool_calls",
        "tool_code",
    ]
    .iter()
    .any(|known| short && known.eq_ignore_ascii_case(word))
}

fn shifted(mut sites: Vec<CallSite>, by: usize) -> Vec<CallSite> {
    for site in &mut sites {
        site.span = site.span.start + by..site.span.end + by;
    }
    sites
}
