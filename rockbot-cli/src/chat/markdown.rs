//! Markdown in colours, while it streams: only certain text is printed, and nothing is printed
//! twice.
//!
//! A line is held back until its first characters tell whether it is a heading, an item or a
//! fence; markers inside of a line are held back until the next character. A line of code whose
//! language has a grammar is held back until its end. Tables, links and everything else are shown
//! as written.

use super::syntax::{Highlighter, MAX_LINE};

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const CODE: &str = "\x1b[36m";
/// Ends [`BOLD`] and [`DIM`].
const NORMAL: &str = "\x1b[22m";
/// Ends [`CODE`].
const PLAIN: &str = "\x1b[39m";

/// The state of a text that is being printed.
#[derive(Debug)]
pub(crate) struct Markdown {
    place: Place,
    /// Characters whose meaning the next one tells: of the beginning of a line, or a run of `*` or
    /// backticks.
    held: String,
    /// `true` between the fences of a block of code.
    is_block: bool,
    /// Text behind the fence that begins a block, while its line is read.
    language: Option<String>,
    /// The grammar of the block.
    grammar: Option<Highlighter>,
    is_bold: bool,
    /// The backticks that end the code of this line, if some began it.
    code: usize,
    /// The last character that was printed, for the meaning of `**`.
    before: char,
}

/// The place of the next character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At the beginning of a line.
    Start,
    /// In a line of text.
    Text,
    /// In a line that is printed as it comes: a heading, a fence, a line of code without a grammar.
    AsIs,
    /// In a line of code with a grammar.
    Code,
}

impl Default for Markdown {
    fn default() -> Self {
        Self {
            place: Place::Start,
            held: String::new(),
            is_block: false,
            language: None,
            grammar: None,
            is_bold: false,
            code: 0,
            before: ' ',
        }
    }
}

impl Markdown {
    /// Returns what can be printed once `text` has come.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 16);
        for next in text.chars() {
            self.take(next, &mut out);
        }
        out
    }

    /// Returns the rest of the text, which ends here, and begins anew.
    pub(crate) fn finish(&mut self) -> String {
        let mut out = String::new();
        self.end_line(&mut out);
        *self = Self::default();
        out
    }

    fn take(&mut self, next: char, out: &mut String) {
        if next == '\n' {
            self.end_line(out);
            out.push('\n');
            return;
        }
        match self.place {
            Place::Start if self.may_be_marker(next) => self.held.push(next),
            Place::Start => self.begin_line(next, out),
            Place::AsIs => {
                out.push(next);
                if let Some(language) = &mut self.language {
                    language.push(next);
                }
            }
            Place::Code => self.code(next, out),
            Place::Text => self.inline(next, out),
        }
    }

    /// Reports whether the held characters and `next` may still be a marker at the beginning of a
    /// line.
    fn may_be_marker(&self, next: char) -> bool {
        let marker = self.held.trim_start_matches(' ');
        match marker.chars().next() {
            None => " #`~-*+".contains(next) && self.held.len() < 12,
            // Fences are at least three, headings at most six.
            Some(first) if "#`~".contains(first) => next == first && marker.len() < 6,
            Some(_) => false,
        }
    }

    /// Prints the beginning of a line, whose next character tells the kind of the line.
    fn begin_line(&mut self, next: char, out: &mut String) {
        let held = std::mem::take(&mut self.held);
        let marker = held.trim_start_matches(' ');
        let indent = &held[..held.len() - marker.len()];
        let is_fence = marker.starts_with("```") || marker.starts_with("~~~");
        if is_fence {
            self.turn_block(Some(next));
        }
        if self.grammar.is_some() {
            self.held = held + next.encode_utf8(&mut [0; 4]);
            self.place = Place::Code;
        } else if is_fence || self.is_block {
            out.push_str(indent);
            out.push_str(if is_fence { DIM } else { CODE });
            out.push_str(marker);
            out.push(next);
            self.place = Place::AsIs;
        } else if marker.starts_with('#') && next == ' ' {
            out.push_str(BOLD);
            self.place = Place::AsIs;
        } else if matches!(marker, "-" | "*" | "+") && next == ' ' {
            out.push_str(indent);
            out.push_str("• ");
            self.begin_text(' ');
        } else {
            out.push_str(indent);
            self.begin_text(' ');
            marker.chars().chain([next]).for_each(|next| self.inline(next, out));
        }
    }

    /// Begins or ends a block of code at a fence, behind which `next` stands.
    fn turn_block(&mut self, next: Option<char>) {
        self.is_block = !self.is_block;
        self.grammar = None;
        self.language = next.filter(|_| self.is_block).map(String::from);
    }

    /// Holds a character of a line of code. A line that is too long is printed as it comes, and so is
    /// the rest of its block, since the grammar has not read the line.
    fn code(&mut self, next: char, out: &mut String) {
        self.held.push(next);
        if self.held.len() >= MAX_LINE {
            self.grammar = None;
            out.extend([CODE, &std::mem::take(&mut self.held)]);
            self.place = Place::AsIs;
        }
    }

    /// Prints a line of code in the colours of its grammar, or in one colour.
    fn end_code(&mut self, out: &mut String) {
        let line = std::mem::take(&mut self.held);
        match self.grammar.as_mut().and_then(|grammar| grammar.line(&line)) {
            Some(coloured) => out.push_str(&coloured),
            None => out.extend([CODE, &line, PLAIN]),
        }
    }

    fn begin_text(&mut self, before: char) {
        self.place = Place::Text;
        self.before = before;
    }

    /// Prints a character of a line of text.
    fn inline(&mut self, next: char, out: &mut String) {
        let is_marker = next == '`' || (next == '*' && self.code == 0);
        if is_marker && self.held.chars().all(|held| held == next) {
            self.held.push(next);
            return;
        }
        self.release(next, out);
        if is_marker {
            self.held.push(next);
        } else {
            out.push(next);
            self.before = next;
        }
    }

    /// Prints the run of markers that stands before `next`, or the style that it begins or ends.
    fn release(&mut self, next: char, out: &mut String) {
        let run = std::mem::take(&mut self.held);
        if run.is_empty() {
            return;
        }
        if run.starts_with('`') && (self.code == 0 || self.code == run.len()) {
            let begins = self.code == 0;
            self.code = if begins { run.len() } else { 0 };
            out.push_str(if begins { CODE } else { PLAIN });
        } else if run == "**" && self.is_bold && !self.before.is_whitespace() {
            self.is_bold = false;
            out.push_str(NORMAL);
        } else if run == "**" && !self.is_bold && !next.is_whitespace() {
            self.is_bold = true;
            out.push_str(BOLD);
        } else {
            out.push_str(&run);
        }
        self.before = run.chars().next_back().unwrap_or(self.before);
    }

    /// Prints the held rest of a line, and ends its styles.
    fn end_line(&mut self, out: &mut String) {
        if self.place == Place::Start && !self.held.is_empty() {
            // A line of a marker alone, such as the end of a block.
            let held = std::mem::take(&mut self.held);
            let is_fence = held.trim_start().starts_with("```") || held.trim_start().starts_with("~~~");
            if is_fence {
                self.turn_block(None);
            }
            let style = if is_fence { (DIM, NORMAL) } else { ("", "") };
            out.push_str(&format!("{}{held}{}", style.0, style.1));
            return;
        }
        match self.place {
            Place::AsIs => {
                out.push_str("\x1b[22;39m");
                self.grammar = self.language.take().and_then(|language| Highlighter::of(&language));
            }
            Place::Code => self.end_code(out),
            Place::Text => {
                self.release(' ', out);
                if self.is_bold || self.code > 0 {
                    out.push_str("\x1b[22;39m");
                }
            }
            Place::Start => {}
        }
        self.place = Place::Start;
        self.is_bold = false;
        self.code = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text as it is printed, with names for the styles.
    fn printed(text: &str) -> String {
        let mut markdown = Markdown::default();
        let shown = markdown.push(text) + &markdown.finish();
        let names = [
            ("\x1b[22;39m", "<end>"),
            (BOLD, "<b>"),
            (DIM, "<dim>"),
            (CODE, "<code>"),
            (NORMAL, "</b>"),
            (PLAIN, "</code>"),
            ("\x1b[32m", "<green>"),
            ("\x1b[33m", "<yellow>"),
            ("\x1b[34m", "<blue>"),
            ("\x1b[35m", "<magenta>"),
        ];
        let shown = names
            .iter()
            .fold(shown, |shown, (style, name)| shown.replace(style, name));
        assert!(!shown.contains('\x1b'), "{shown}");
        shown
    }

    #[test]
    fn lines_and_words_have_their_styles() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a **bold** word", "a <b>bold</b> word"),
            ("run `ls -l` now", "run <code>ls -l</code> now"),
            ("``a`b``", "<code>a`b</code>"),
            ("# Title\ntext", "<b>Title<end>\ntext"),
            ("#hash", "#hash"),
            ("- one\n  * two", "• one\n  • two"),
            ("-5 degrees", "-5 degrees"),
            ("2 ** 3 ** 4", "2 ** 3 ** 4"),
            ("2*3*4", "2*3*4"),
            ("**open", "<b>open<end>"),
            (
                "```none\nls **x**\n```\nend",
                "<dim>```none<end>\n<code>ls **x**<end>\n<dim>```</b>\nend",
            ),
            ("**Note**: x", "<b>Note</b>: x"),
            ("| a | b |", "| a | b |"),
        ] {
            assert_eq!(printed(text), expected, "{text:?}");
        }
    }

    #[cfg(feature = "syntax")]
    #[test]
    fn code_has_the_colours_of_its_grammar() {
        let long = "x".repeat(5_000);
        for (text, expected) in [
            (
                "```rust\nlet x = \"a\"; // why\n\n/* two\n* lines */\n```\nlet it be",
                "<dim>```rust<end>\n<magenta>let<end> x = <green>\"a\"<end>; <dim>// why<end>\n\n<dim>/* two<end>\n\
                 <dim>* lines */<end>\n<dim>```</b>\nlet it be",
            ),
            (
                "- a\n  ```py\n  return f(1)",
                "• a\n  <dim>```py<end>\n  <magenta>return <end><blue>f<end>(<yellow>1<end>)",
            ),
            (
                "```no-such\nlet x;\n```",
                "<dim>```no-such<end>\n<code>let x;<end>\n<dim>```</b>",
            ),
            (
                &format!("```rust\n{long}\nlet y;\n```"),
                &format!("<dim>```rust<end>\n<code>{long}<end>\n<code>let y;<end>\n<dim>```</b>"),
            ),
        ] {
            assert_eq!(printed(text), expected);
        }
    }

    #[test]
    fn pieces_of_any_size_print_the_same() {
        let text = "# A\n- **b** `c`\n\n```rust\nlet x = 1;\n```\n1. ***x*** _y_ `` ` `` ~~~\n> ### q\n**";
        let whole = printed(text);
        for size in 1..8 {
            let mut markdown = Markdown::default();
            let characters: Vec<char> = text.chars().collect();
            let pieces = characters.chunks(size).map(|piece| piece.iter().collect::<String>());
            let mut shown: String = pieces.map(|piece| markdown.push(&piece)).collect();
            shown += &markdown.finish();
            let mut at_once = Markdown::default();
            assert_eq!(shown, at_once.push(text) + &at_once.finish());
        }
        assert!(whole.contains("• <b>b</b> <code>c</code>"), "{whole}");
    }
}
