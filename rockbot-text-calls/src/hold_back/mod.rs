//! Filtering of an answer while it is streamed.

mod object;
mod opens;

use std::borrow::Cow;
use std::sync::Arc;

use crate::answer::TextAnswer;
use crate::cursor::starts_with;
use crate::fence::Fence;
use crate::thought::{THOUGHTS, closed_by};
use crate::tools::Tools;

/// Number of held bytes after which text that may still become a call is treated as a call.
const MAX_DOUBT: usize = 640;

/// A filter that holds back text that may be part of a call while an answer is streamed.
///
/// It takes the pieces of the answer and returns the text that can be shown: no byte of it can
/// still become part of a call, of something malformed, or of a result that the model
/// hallucinates. When a call may have begun it holds all that follows, until the answer is
/// complete and [`TextCallParser::parse`](crate::TextCallParser::parse) decides. All that was
/// returned and [`HoldBack::held`] together are the answer; [`HoldBack::rest_of`] is the part of
/// the rest to show. It keeps no more than is held.
///
/// ```
/// use rockbot_text_calls::TextCallParser;
///
/// let mut answer = TextCallParser::new(["get_weather"]).hold_back();
/// assert_eq!(answer.push("Is 1 < 2? Yes.\n"), "Is 1 < 2? Yes.\n");
/// assert_eq!(answer.push("Now the weather.\n<tool"), "Now the weather.\n");
/// assert_eq!(answer.push("_call>{\"name\": "), "");
/// assert_eq!(answer.held(), "<tool_call>{\"name\": ");
/// assert!(answer.may_be_call());
/// ```
#[derive(Debug)]
pub struct HoldBack {
    tools: Arc<Tools>,
    held: String,
    /// Set once a call may have begun; from then on everything is held.
    may_be_call: bool,
    /// Set while only white space was received.
    at_start: bool,
    at_line_start: bool,
    in_code: bool,
    fence: Option<Fence>,
    /// The token that closes the reasoning block that is being streamed.
    thought: Option<&'static str>,
    /// Set if words stand before the reasoning block. Then its opening token was written in the
    /// prompt, or so it seems, and any closing token ends the block.
    ends_by_any: bool,
    /// Set while only white space was received since a reasoning block ended.
    behind_thought: bool,
    /// Number of bytes passed on: all bytes, the bytes from the first to the last word, and trailing
    /// white space.
    shown: usize,
    words: usize,
    space: usize,
}

/// The answer to whether a call begins at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opens {
    No,
    /// More text is needed to decide.
    Unclear,
    Yes,
}

impl Opens {
    /// Returns this answer if it is certain that a call begins, else the stronger of both.
    fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        match (self, if self == Self::Yes { Self::Yes } else { other() }) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::Unclear, _) | (_, Self::Unclear) => Self::Unclear,
            (Self::No, Self::No) => Self::No,
        }
    }

    fn unclear_if(unclear: bool) -> Self {
        if unclear { Self::Unclear } else { Self::No }
    }
}

impl HoldBack {
    pub(super) fn new(tools: Arc<Tools>) -> Self {
        Self {
            tools,
            held: String::new(),
            may_be_call: false,
            at_start: true,
            at_line_start: true,
            in_code: false,
            fence: None,
            thought: None,
            ends_by_any: false,
            behind_thought: false,
            shown: 0,
            words: 0,
            space: 0,
        }
    }

    /// Takes the next piece of the answer and returns the text that can be shown now; empty if all of
    /// it is held back.
    pub fn push<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        if self.may_be_call {
            self.held.push_str(piece);
            return Cow::Borrowed("");
        }
        if self.held.is_empty() {
            let shown = self.scan(piece);
            self.held.push_str(&piece[shown..]);
            return Cow::Borrowed(&piece[..shown]);
        }
        let mut text = std::mem::take(&mut self.held);
        text.push_str(piece);
        let shown = self.scan(&text);
        self.held.push_str(&text[shown..]);
        text.truncate(shown);
        Cow::Owned(text)
    }

    /// Returns the length of the text, from its beginning, that can be shown.
    fn scan(&mut self, text: &str) -> usize {
        let mut shown = 0;
        loop {
            shown += self.plain(&text[shown..]);
            let rest = &text[shown..];
            if rest.is_empty() {
                break;
            }
            match self.opens(rest) {
                Opens::Yes => {
                    self.may_be_call = true;
                    break;
                }
                Opens::Unclear => break,
                Opens::No => shown += self.pass(rest),
            }
        }
        self.count(&text[..shown]);
        shown
    }

    /// Returns the length of the beginning where nothing can open or close: in the middle of a line
    /// only the marks below do.
    fn plain(&self, text: &str) -> usize {
        if self.may_begin() {
            return 0;
        }
        // Without an early end the compiler compares sixteen bytes at once.
        let is_mark = |&byte: &u8| {
            let bracket = (byte == b'<') | (byte == b'>') | (byte == b'[') | (byte == b']') | (byte == b'{');
            bracket | (byte == b'\n') | (byte == b'`')
        };
        let has_mark = |chunk: &[u8; 16]| chunk.iter().fold(false, |found, byte| found | is_mark(byte));
        let (chunks, _) = text.as_bytes().as_chunks();
        let checked = chunks.iter().take_while(|chunk| !has_mark(chunk)).count() * 16;
        let rest = &text.as_bytes()[checked..];
        checked + rest.iter().position(is_mark).unwrap_or(rest.len())
    }

    /// Returns the text that is held back.
    pub fn held(&self) -> &str {
        &self.held
    }

    /// Returns `true` once a call may have begun. No more text is returned then.
    pub fn may_be_call(&self) -> bool {
        self.may_be_call
    }

    /// Returns the text of the complete, parsed answer that was not shown yet.
    pub fn rest_of<'a>(&self, answer: &'a TextAnswer) -> &'a str {
        if answer.calls.is_empty() && answer.malformed.is_empty() && answer.hallucinated_from.is_none() {
            return answer.text.get(self.shown..).unwrap_or_default();
        }
        // Something was taken out, and the space around the words that were shown with it.
        let rest = answer.text.get(self.words..).unwrap_or_default();
        let space = rest.len() - rest.trim_start().len();
        rest.get(space.min(self.space)..).unwrap_or(rest)
    }

    fn count(&mut self, shown: &str) {
        self.shown += shown.len();
        let shown = if self.words == 0 { shown.trim_start() } else { shown };
        let words = shown.trim_end().len();
        if words > 0 {
            self.words += self.space + words;
            self.space = 0;
        }
        self.space += shown.len() - words;
    }

    /// Moves over text that cannot begin a call: a line that opens or closes a fence, a token, or a
    /// character.
    fn pass(&mut self, text: &str) -> usize {
        if let Some(line) = self.fence_line(text) {
            return line;
        }
        let thought = THOUGHTS
            .iter()
            .find(|(open, _)| starts_with(text, open) && self.may_begin());
        match (self.thought, thought) {
            (None, Some((open, close))) if self.fence.is_none() => {
                self.thought = Some(close);
                self.ends_by_any = !self.at_start && !self.behind_thought;
                self.at_start = false;
                self.at_line_start = false;
                return open.len();
            }
            (Some(close), _) => {
                let closed = Some(close).filter(|close| text.starts_with(close));
                let closed = closed.or_else(|| closed_by(text).filter(|_| self.ends_by_any));
                if let Some(close) = closed {
                    self.thought = None;
                    self.behind_thought = true;
                    self.at_line_start = false;
                    self.in_code = false;
                    return close.len();
                }
            }
            // Many templates write the opening token into the prompt.
            (None, _) if self.fence.is_none() && !self.in_code => {
                if let Some(close) = closed_by(text) {
                    self.behind_thought = true;
                    self.at_line_start = false;
                    return close.len();
                }
            }
            _ => {}
        }
        let Some(char) = text.chars().next() else { return 0 };
        self.at_start &= char.is_whitespace();
        self.behind_thought &= char.is_whitespace();
        self.at_line_start = char == '\n' || self.at_start;
        self.in_code = char != '\n' && (self.in_code != (char == '`'));
        char.len_utf8()
    }

    /// Returns the length of the line, if it opens or closes a fence.
    fn fence_line(&mut self, text: &str) -> Option<usize> {
        if !self.may_begin() || self.thought.is_some() || self.only_space(text) {
            return None;
        }
        let line = text.split_inclusive('\n').next()?;
        let opened = Fence::opened_by(line).map(|(fence, _)| fence);
        let closed = self.fence.is_some_and(|fence| fence.is_closed_by(line));
        self.fence = match self.fence {
            Some(_) if closed => None,
            None if opened.is_some() => opened,
            _ => return None,
        };
        self.at_start = false;
        self.behind_thought = false;
        self.at_line_start = true;
        self.in_code = false;
        Some(line.len())
    }

    /// Returns `true` at the start of a line, or directly after a reasoning block.
    fn may_begin(&self) -> bool {
        self.at_line_start || self.behind_thought
    }

    /// Returns `true` for white space before the first word of the answer, or after a reasoning block.
    fn only_space(&self, text: &str) -> bool {
        (self.at_start || self.behind_thought) && text.starts_with(char::is_whitespace)
    }

    fn opens(&self, text: &str) -> Opens {
        let opens = match self.thought {
            Some(close) => opens::in_thought(text, close, self.ends_by_any),
            None if self.only_space(text) => Opens::No,
            None if self.may_begin() => self.line_opens(text),
            None if self.fence.is_some() || self.in_code => Opens::No,
            None => opens::in_line(text, &self.tools),
        };
        // Text that stays unclear for so many bytes is rather held than shown.
        match opens {
            Opens::Unclear if text.len() >= MAX_DOUBT => Opens::Yes,
            opens => opens,
        }
    }

    /// Decides at the start of a line.
    fn line_opens(&self, text: &str) -> Opens {
        // Whether a line opens or closes a fence shows at its end.
        let marks = text.trim_start_matches([' ', '\t']);
        if !text.contains('\n') && (marks.is_empty() || marks.starts_with(['`', '~'])) {
            return Opens::Unclear;
        }
        if self.fence.is_some() {
            return Opens::No;
        }
        let alone = self.at_start || self.behind_thought;
        match Fence::opened_by(text.lines().next().unwrap_or_default()) {
            Some((fence, info)) => {
                opens::token(text).or_else(|| opens::in_fence(text, (fence, info), alone, &self.tools))
            }
            None => opens::at_line_start(text, alone, &self.tools),
        }
    }
}
