//! Reasoning inside the text: a `<think>…</think>` block at its start, found while the text
//! arrives in pieces.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// A text that begins with more blanks than this begins with no block.
const MAX_HELD_BYTES: usize = 256;

/// Splits a text that arrives in pieces into reasoning and answer.
#[derive(Debug, Default)]
pub(super) struct ThinkSplitter {
    stage: Stage,
    /// Text that may be the start of a tag, held back until it is certain.
    held: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Before the block: only blanks and a possible start of the opening tag so far.
    #[default]
    Start,
    /// Inside the block.
    Thinking,
    /// Behind the block, before the answer's first word.
    Gap,
    /// Inside the answer.
    Answer,
}

/// A piece of text, assigned to reasoning or answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Reasoning(&'a str),
    Answer(&'a str),
}

impl ThinkSplitter {
    /// Takes the next piece; `emit` gets the pieces that are certain by now.
    pub(super) fn push(&mut self, text: &str, emit: &mut impl FnMut(Piece<'_>)) {
        if self.stage == Stage::Answer {
            return emit_text(Piece::Answer(text), emit);
        }
        let mut pending = std::mem::take(&mut self.held);
        let mut rest = text;
        if !pending.is_empty() {
            pending.push_str(text);
            rest = &pending;
        }
        while let Some(after) = self.step(rest, emit) {
            rest = after;
        }
    }

    /// Ends the text: the text that was held back was no tag after all.
    pub(super) fn finish(&mut self, emit: &mut impl FnMut(Piece<'_>)) {
        let held = std::mem::take(&mut self.held);
        match self.stage {
            Stage::Thinking => emit_text(Piece::Reasoning(&held), emit),
            Stage::Gap => {}
            Stage::Start | Stage::Answer => emit_text(Piece::Answer(&held), emit),
        }
    }

    /// Takes one step; returns the rest of the text for the next step.
    fn step<'a>(&mut self, text: &'a str, emit: &mut impl FnMut(Piece<'_>)) -> Option<&'a str> {
        match self.stage {
            Stage::Start => {
                let word = text.trim_start();
                if let Some(inside) = word.strip_prefix(OPEN) {
                    self.stage = Stage::Thinking;
                    return Some(inside);
                }
                if OPEN.starts_with(word) && text.len() <= MAX_HELD_BYTES {
                    self.held.push_str(text);
                    return None;
                }
                self.stage = Stage::Answer;
                Some(text)
            }
            Stage::Thinking => match text.split_once(CLOSE) {
                Some((thought, after)) => {
                    emit_text(Piece::Reasoning(thought), emit);
                    self.stage = Stage::Gap;
                    Some(after)
                }
                None => {
                    let (thought, held) = text.split_at(text.len() - tag_start(text));
                    emit_text(Piece::Reasoning(thought), emit);
                    self.held.push_str(held);
                    None
                }
            },
            Stage::Gap => {
                let answer = text.trim_start();
                if answer.is_empty() {
                    return None;
                }
                self.stage = Stage::Answer;
                Some(answer)
            }
            Stage::Answer => {
                emit_text(Piece::Answer(text), emit);
                None
            }
        }
    }
}

/// Returns the number of bytes at the end of `text` that may be the start of the closing tag.
fn tag_start(text: &str) -> usize {
    (1..CLOSE.len())
        .rev()
        .find(|&length| text.ends_with(&CLOSE[..length]))
        .unwrap_or(0)
}

fn emit_text(piece: Piece<'_>, emit: &mut impl FnMut(Piece<'_>)) {
    let (Piece::Reasoning(text) | Piece::Answer(text)) = piece;
    if !text.is_empty() {
        emit(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&str]) -> (String, String) {
        let mut reasoning = String::new();
        let mut answer = String::new();
        let mut emit = |piece: Piece<'_>| match piece {
            Piece::Reasoning(text) => reasoning.push_str(text),
            Piece::Answer(text) => answer.push_str(text),
        };
        let mut splitter = ThinkSplitter::default();
        for piece in pieces {
            splitter.push(piece, &mut emit);
        }
        splitter.finish(&mut emit);
        (reasoning, answer)
    }

    /// `text` splits the same way whole, character by character, and cut in two anywhere.
    fn check(text: &str, reasoning: &str, answer: &str) {
        let expected = (reasoning.to_owned(), answer.to_owned());
        assert_eq!(split(&[text]), expected);
        let characters: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(
            split(&characters.iter().map(String::as_str).collect::<Vec<_>>()),
            expected
        );
        for middle in (0..text.len()).filter(|&at| text.is_char_boundary(at)) {
            let (a, b) = text.split_at(middle);
            assert_eq!(split(&[a, b]), expected, "cut at {middle}");
        }
    }

    #[test]
    fn a_block_at_the_start_is_reasoning() {
        check("<think>2 < 3, é</thin</think>\n\n yes ", "2 < 3, é</thin", "yes ");
        check("\n <think>a</think>b</think>", "a", "b</think>");
        check("<think></think>b", "", "b");
    }

    #[test]
    fn a_block_elsewhere_is_text() {
        check("so <think>a</think>", "", "so <think>a</think>");
        check("  plain", "", "  plain");
        check("<thin", "", "<thin");
        check("<", "", "<");
        let blanks = "\n".repeat(300);
        check(&blanks, "", &blanks);
    }

    #[test]
    fn a_block_without_end_is_reasoning() {
        check("<think>cut off </th", "cut off </th", "");
    }
}
