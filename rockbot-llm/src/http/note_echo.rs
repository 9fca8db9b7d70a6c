//! Answers in the form of a note: small models write on in the form of the text before, and begin
//! their answer as the host's notes begin.

use super::notes::{BEGIN, BEHIND, LETTERS, MARK_LEN};

/// Maximum length of a text that is held, in bytes: a longer note is passed on without its beginning,
/// and longer white space before an answer as it is.
const MAX_NOTE: usize = 2_000;

/// Takes the form of a note from an answer that begins like one. A copy of the host's own note
/// before the answer goes as a whole.
///
/// Nothing else begins like that, since marks are letters without vowels. What is passed on does not
/// depend on the pieces in which the answer comes.
#[derive(Debug, Default)]
pub(crate) struct NoteEcho {
    place: Place,
    /// Text that is not passed on yet: the beginning of an answer, or a note without its marks.
    held: String,
    /// Length of the note in `held`, behind which white space may stand.
    note: usize,
}

/// The place in an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// At the beginning, which may be the beginning of a note.
    #[default]
    Start,
    /// Behind the beginning of a note, with so many open brackets.
    Inside(usize),
    /// Behind the end of a note, with nothing but white space since.
    Behind,
    /// In an answer that is not, or no longer, in the form of a note.
    Rest,
}

impl NoteEcho {
    /// Takes more of an answer, and passes on what belongs to it. `is_own` reports whether a text is
    /// a note of the host.
    pub(crate) fn push(&mut self, text: &str, is_own: impl Fn(&str) -> bool, emit: &mut dyn FnMut(&str)) {
        for (at, next) in text.char_indices() {
            if self.place == Place::Rest {
                return emit(&text[at..]);
            }
            self.take(next, &is_own);
            if self.place == Place::Rest {
                // The pieces stay as they came.
                self.held.push_str(&text[at + next.len_utf8()..]);
                return emit(&std::mem::take(&mut self.held));
            }
        }
    }

    /// Ends the answer: what is held is all of it.
    pub(crate) fn finish(&mut self, emit: &mut dyn FnMut(&str)) {
        if self.place == Place::Behind {
            self.held.truncate(self.note);
        }
        self.place = Place::Rest;
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            emit(&held);
        }
    }

    fn take(&mut self, next: char, is_own: impl Fn(&str) -> bool) {
        match (self.place, next) {
            (Place::Inside(1), ']') => {
                self.note = self.held.len();
                self.place = Place::Behind;
                return;
            }
            (Place::Inside(open), ']') => self.place = Place::Inside(open - 1),
            (Place::Inside(open), '[') => self.place = Place::Inside(open + 1),
            (Place::Behind, next) if !next.is_whitespace() => {
                if is_own(self.held[..self.note].trim()) {
                    self.held.clear();
                }
                self.place = Place::Rest;
            }
            _ => {}
        }
        self.held.push(next);
        if self.held.len() > MAX_NOTE {
            self.place = Place::Rest;
        } else if self.place == Place::Start {
            match fit(self.held.trim_start()) {
                Fit::Part => {}
                Fit::Whole => {
                    self.held.clear();
                    self.place = Place::Inside(1);
                }
                Fit::None => self.place = Place::Rest,
            }
        }
    }
}

/// The likeness of a text to the beginning of a note.
enum Fit {
    /// It may become one.
    Part,
    /// It is one.
    Whole,
    None,
}

fn fit(text: &str) -> Fit {
    let Some(behind) = text.strip_prefix(BEGIN) else {
        return if BEGIN.starts_with(text) { Fit::Part } else { Fit::None };
    };
    let mark = behind.bytes().take_while(|letter| LETTERS.contains(letter)).count();
    match (mark, &behind[mark..]) {
        (MARK_LEN, BEHIND) => Fit::Whole,
        (MARK_LEN, behind) if BEHIND.starts_with(behind) => Fit::Part,
        (..MARK_LEN, "") => Fit::Part,
        _ => Fit::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is passed on of an answer that comes in pieces of `size` characters.
    fn passed(text: &str, size: usize) -> String {
        let characters: Vec<char> = text.chars().collect();
        let mut echo = NoteEcho::default();
        let mut out = String::new();
        for piece in characters.chunks(size) {
            let piece: String = piece.iter().collect();
            let is_own = |note: &str| note == "it is noon";
            echo.push(&piece, is_own, &mut |text| out.push_str(text));
        }
        echo.finish(&mut |text| out.push_str(text));
        out
    }

    #[test]
    fn an_answer_loses_the_form_of_a_note_whatever_its_pieces() {
        let long = "x".repeat(3_000);
        let blank = " ".repeat(100_000) + "[Note mgkwnjg: a]";
        for (text, expected) in [
            ("[Note mgkwnjg: 17 * 23 = 391]", "17 * 23 = 391"),
            ("\n[Note mgkwnjg: it is noon]\n\n391 [sic]", "391 [sic]"),
            ("[Note mgkwnjg: it is noon] 391", "391"),
            ("[Note mgkwnjg: it is noon]\n", "it is noon"),
            ("[Note mgkwnjg: 391]\nThat is all.", "391\nThat is all."),
            ("[Note mgkwnjg: a[1] and b[2]]", "a[1] and b[2]"),
            ("[Note mgkwnjg: no end", "no end"),
            ("[Note mgkwnjg: ]", ""),
            (&format!("[Note mgkwnjg: {long}]"), &format!("{long}]")),
            (&blank, &blank),
            ("[Note to self: buy milk]", "[Note to self: buy milk]"),
            ("[Note mgkwnj: six letters]", "[Note mgkwnj: six letters]"),
            ("[Note mgkwnjgb: eight letters]", "[Note mgkwnjgb: eight letters]"),
            ("[Note", "[Note"),
            ("  ", "  "),
            ("", ""),
            ("Text. [Note mgkwnjg: quoted]", "Text. [Note mgkwnjg: quoted]"),
            ("[Nöte", "[Nöte"),
        ] {
            for size in [1, 2, 3, 7, 20, 5_000] {
                assert_eq!(passed(text, size), expected, "{text:?} by {size}");
            }
        }
    }
}
