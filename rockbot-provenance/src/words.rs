//! A value found in a text as a whole: with boundaries, and never as a part of another word,
//! address or path.

use memchr::memmem;

use crate::evidence::Known;
use crate::short;

/// A value as it was found in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Finds a value of several words or one: the same characters, with upper and lower case and the
/// kind of white space ignored.
///
/// A short value counts only where the words around it explain it: `names` are the words of the
/// argument and the tool.
pub(crate) fn find(value: &str, known: &Known<'_>, names: &[String]) -> Option<Found> {
    let value = value.trim_start_matches("./").trim_matches(['/', '#', '@']).trim();
    if value.is_empty() || has_hidden(value) {
        return None;
    }
    let folded = value.to_ascii_lowercase();
    let is_short = short::is_short(value);
    let counts = |found: Found| {
        let is_part = is_part(&known.raw, found) || is_short && known.is_temporal(found.start, found.end);
        !is_part && (!is_short || short::is_meant(value, known, found.start..found.end, names))
    };
    occurrences(&folded, &known.folded).find(|found| counts(*found))
}

/// Finds the places of `needle` in `text`, both in lower case. White space and underscores stand
/// for each other.
fn occurrences<'a>(needle: &'a str, text: &'a str) -> impl Iterator<Item = Found> + 'a {
    let is_gap = |char: char| char.is_whitespace() || char == '_';
    let mut words = needle.split(is_gap).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or(needle);
    let others: Vec<&str> = words.collect();
    memmem::find_iter(text.as_bytes(), first.as_bytes()).filter_map(move |start| {
        let mut end = start + first.len();
        for word in &others {
            let rest = text.get(end..)?;
            let trimmed = rest.trim_start_matches(is_gap);
            if trimmed.len() == rest.len() || !trimmed.starts_with(word) {
                return None;
            }
            end += rest.len() - trimmed.len() + word.len();
        }
        Some(Found { start, end })
    })
}

/// Returns `true` if the place is a part of a longer word, address, path or number.
pub(crate) fn is_part(text: &str, found: Found) -> bool {
    let (before, after) = (&text[..found.start], &text[found.end..]);
    let mut back = before.chars().rev();
    let is_inner = match back.next() {
        None => false,
        // A mention of a user or a channel, unless the sign is inside of an address.
        Some('@' | '#') => back
            .next()
            .is_some_and(|char| char.is_alphanumeric() || "._-".contains(char)),
        Some('.') => back.next().is_some_and(char::is_alphanumeric),
        Some(char) => char.is_alphanumeric() || "/\\-_+=%&".contains(char),
    };
    let mut ahead = after.chars();
    let goes_on = match ahead.next() {
        None => false,
        Some('.') => ahead.next().is_some_and(char::is_alphanumeric),
        // Of a number, a time or a host with its port.
        Some(',' | ':') => ahead.next().is_some_and(|char| char.is_ascii_digit()),
        // A final slash belongs to the path.
        Some('/') => ahead.next().is_some_and(|char| !char.is_whitespace()),
        Some(char) => char.is_alphanumeric() || "@\\-_+=%&".contains(char),
    };
    is_inner || goes_on
}

/// Reports whether the value stands in a text as a word of its own.
pub(crate) fn has_word(value: &str, text: &str) -> bool {
    let is_whole = |start: usize| {
        !is_part(
            text,
            Found {
                start,
                end: start + value.len(),
            },
        )
    };
    memmem::find_iter(text.as_bytes(), value.as_bytes()).any(is_whole)
}

/// Finds a long code without regard to the blanks, dots and dashes within it, such as an IBAN or a
/// number of a telephone. A code has at least eight characters, four of them digits, or six
/// digits.
pub(crate) fn find_code(value: &str, known: &Known<'_>) -> Option<Found> {
    let is_gap = |char: char| " -.()/".contains(char);
    let code: String = value.chars().filter(|char| !is_gap(*char)).collect();
    let code = code.to_ascii_lowercase();
    let is_plain = code.chars().all(|char| char.is_ascii_alphanumeric() || char == '+');
    let digits = code.bytes().filter(u8::is_ascii_digit).count();
    let is_code = (code.len() >= 8 && digits >= 4) || (digits >= 6 && digits == code.len());
    if !is_plain || !is_code {
        return None;
    }
    let first = code.as_bytes()[0];
    memchr::memchr_iter(first, known.folded.as_bytes()).find_map(|start| {
        let end = end_of_code(&code, known.folded.get(start..)?)? + start;
        let found = Found { start, end };
        (!is_part(&known.raw, found)).then_some(found)
    })
}

/// Returns the length of `code` at the beginning of `text`, with at most two gaps in a row.
fn end_of_code(code: &str, text: &str) -> Option<usize> {
    let mut wanted = code.bytes().peekable();
    let mut gaps = 0;
    for (at, byte) in text.bytes().enumerate() {
        let Some(next) = wanted.peek() else {
            return Some(at);
        };
        if byte == *next {
            wanted.next();
            gaps = 0;
        } else if b" -.()/".contains(&byte) && gaps < 2 {
            gaps += 1;
        } else {
            return None;
        }
    }
    wanted.peek().is_none().then_some(text.len())
}

/// Returns `true` for a path whose folder and file stand in the text by themselves, since the user
/// named them apart.
pub(crate) fn has_path(value: &str, known: &Known<'_>, names: &[String]) -> bool {
    let value = value.trim_start_matches("./").trim_matches('/');
    let stands = |part: &str| find(part, known, names).is_some();
    let mut parts = value.match_indices('/').map(|(at, _)| (&value[..at], &value[at + 1..]));
    !value.contains("://") && !value.contains("..") && parts.any(|(folder, file)| stands(folder) && stands(file))
}

/// Returns `true` for text with characters that a person does not see: control characters, zero
/// width and direction marks, tags.
pub(crate) fn has_hidden(text: &str) -> bool {
    text.chars().any(|char| {
        (char.is_control() && !char.is_whitespace())
            || matches!(char, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    })
}
