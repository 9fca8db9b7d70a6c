//! The words of an answer, found in long texts.
//!
//! Words are compared in lower case and without the endings of verbs and nouns, numbers and ids
//! without the signs within them. Each text that a turn has read is looked through at the end of the
//! turn, so the words that the answer lacks, which are nearly all, cost no look-up: a table of first
//! letters and lengths tells them.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::memmem;

use crate::action::{is_filler, stem_of};
use crate::fast::Fast;

/// Minimum length of a word that says something, in bytes.
const MIN_WORD: usize = 3;

/// Maximum length of texts that are looked through before the answer, in bytes.
const MAX_LOOKED_THROUGH: usize = 16 << 10;

/// Maximum number of words of texts that are searched for in the answer one by one.
const MAX_FEW: usize = 64;

/// The signs that separate words and that no number, address or id has, besides white space.
const SIGNS: &str = "\"'`()[]{}<>|;:*!?=";

/// The same beyond ASCII.
const FURTHER_SIGNS: &str = "“”„‘’«»…—";

/// For each first byte of a word a bit for each length.
type Lengths = [u64; 256];

/// The words of an answer that may stand in texts, with their numbers.
pub(crate) struct Vocabulary {
    numbers: HashMap<String, usize, Fast>,
    lengths: Lengths,
    /// The words of the texts.
    wanted: Lengths,
    /// The words of the texts, where they are few.
    few: Option<Vec<String>>,
}

/// The place of a word in a vocabulary.
pub(crate) enum Found {
    /// The word says nothing.
    Nothing,
    /// The vocabulary lacks the word.
    Other,
    /// The number of the word.
    Word(usize),
}

impl Vocabulary {
    /// Creates a vocabulary for words that may stand in `texts`. Where the texts are long, any word
    /// may.
    pub(crate) fn of(texts: &[&str]) -> Self {
        let mut words = Self {
            numbers: HashMap::default(),
            lengths: [0; 256],
            wanted: [0; 256],
            few: Some(Vec::new()),
        };
        if texts.iter().map(|text| text.len()).sum::<usize>() > MAX_LOOKED_THROUGH {
            words.wanted = [u64::MAX; 256];
            words.few = None;
            return words;
        }
        for form in texts.iter().flat_map(|text| split(text)).filter_map(comparable) {
            words.want(stem_of(&form));
        }
        words
    }

    /// Adds a word of the texts.
    fn want(&mut self, stem: &str) {
        let (first, length) = place(stem);
        let may_be_known = self.wanted[first] & length != 0;
        self.wanted[first] |= length;
        let Some(few) = &mut self.few else { return };
        if may_be_known && few.iter().any(|known| known == stem) {
            return;
        }
        few.push(stem.to_owned());
        self.few = self.few.take().filter(|few| few.len() <= MAX_FEW);
    }

    /// Returns `false` if none of the few words of the texts stands in an answer.
    pub(crate) fn may_stand_in(&self, answer: &str) -> bool {
        let Some(few) = self.few.as_ref().filter(|_| answer.is_ascii()) else {
            return true;
        };
        let folded = answer.to_ascii_lowercase();
        let (numbers, words): (Vec<&String>, Vec<&String>) = few.iter().partition(|word| has_digit(word));
        let begins_word = |at: usize| at == 0 || !folded.as_bytes()[at - 1].is_ascii_alphanumeric();
        let is_said = |word: &&String| memmem::find_iter(folded.as_bytes(), word.as_bytes()).any(begins_word);
        if words.iter().any(is_said) {
            return true;
        }
        // Without an early end, so that many bytes are compared at once.
        let is_said = folded
            .bytes()
            .fold(false, |is_said, byte| is_said | byte.is_ascii_digit());
        if numbers.is_empty() || !is_said {
            return false;
        }
        // A number may be written with other signs.
        let mut said = split(&folded)
            .filter(|written| has_digit(written))
            .filter_map(comparable);
        said.any(|said| numbers.iter().any(|number| **number == said))
    }

    /// Returns `true` if no word of the answer may stand in the texts.
    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Adds a word of the answer, if it says something and may stand in the texts.
    pub(crate) fn add(&mut self, written: &str) -> Found {
        let Some(form) = comparable(written).filter(|form| !is_filler(form)) else {
            return Found::Nothing;
        };
        let stem = stem_of(&form);
        let (first, length) = place(stem);
        if self.wanted[first] & length == 0 {
            return Found::Other;
        }
        self.lengths[first] |= length;
        let next = self.numbers.len();
        Found::Word(*self.numbers.entry(stem.to_owned()).or_insert(next))
    }

    /// Finds a word. Whether a word that the vocabulary lacks says nothing is looked up only if it
    /// `matters`.
    pub(crate) fn find(&self, written: &str, matters: bool) -> Found {
        let Some(form) = comparable(written) else {
            return Found::Nothing;
        };
        let stem = stem_of(&form);
        let (first, length) = place(stem);
        let may_have = self.lengths[first] & length != 0;
        if (may_have || matters) && is_filler(&form) {
            return Found::Nothing;
        }
        let number = if may_have { self.numbers.get(stem) } else { None };
        number.map_or(Found::Other, |number| Found::Word(*number))
    }
}

/// Returns `true` for a number, or an id with a digit.
fn has_digit(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns the first byte of a word and the bit of its length.
fn place(form: &str) -> (usize, u64) {
    let first = form.bytes().next().unwrap_or_default();
    (first.into(), 1 << form.len().min(63))
}

/// Returns a word in lower case, a number or an id without the signs within it; `None` for a word of
/// fewer than three bytes, or a number of one digit.
fn comparable(written: &str) -> Option<Cow<'_, str>> {
    if written.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return (written.len() >= MIN_WORD).then_some(written.into());
    }
    if !has_digit(written) {
        return (written.len() >= MIN_WORD).then(|| written.to_lowercase().into());
    }
    let plain: String = written.chars().filter(|char| char.is_alphanumeric()).collect();
    (plain.len() > 1).then(|| plain.to_lowercase().into())
}

/// Splits a text at white space and at signs that stand within no number, address or id.
pub(crate) fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at = skip(text, at, Class::Edge);
        let start = at;
        at = skip(text, at, Class::Inner);
        (start < at).then(|| trimmed(&text[start..at]))
    })
}

/// Returns the end of the characters of a class from `at` on.
fn skip(text: &str, mut at: usize, class: Class) -> usize {
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        let found = CLASSES[usize::from(*byte)];
        if found == class {
            at += 1;
            continue;
        }
        let Some(char) = text[at..].chars().next().filter(|_| found == Class::Other) else {
            return at;
        };
        let is_edge = char.is_whitespace() || FURTHER_SIGNS.contains(char);
        if is_edge != (class == Class::Edge) {
            return at;
        }
        at += char.len_utf8();
    }
    at
}

/// Returns a word without the signs at its ends.
fn trimmed(word: &str) -> &str {
    let is_whole = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = word.as_bytes();
    if is_whole(bytes.first()) && is_whole(bytes.last()) {
        return word;
    }
    word.trim_matches(|char: char| !char.is_alphanumeric())
}

/// The class of a byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// A part of a word.
    Inner,
    /// A separator of words.
    Edge,
    /// A part of a character beyond ASCII.
    Other,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Inner; 256];
    let signs = SIGNS.as_bytes();
    let mut at = 0;
    while at < signs.len() {
        classes[signs[at] as usize] = Class::Edge;
        at += 1;
    }
    let mut byte = 0;
    while byte < 256 {
        if byte <= b' ' as usize {
            classes[byte] = Class::Edge;
        } else if byte >= 0x80 {
            classes[byte] = Class::Other;
        }
        byte += 1;
    }
    classes
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_signs_that_no_number_or_address_has() {
        let words: Vec<_> =
            split("Rent: 1,250.00 euros (\"Elm Street\")—miller@flats.example, «2027-01-01»…").collect();
        let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        assert_eq!(
            words,
            [
                "Rent",
                "1,250.00",
                "euros",
                "Elm",
                "Street",
                "miller@flats.example",
                "2027-01-01"
            ]
        );
        assert_eq!(split("\u{0}\u{3000}  ").filter(|word| !word.is_empty()).count(), 0);
    }

    #[test]
    fn words_are_found_in_every_form_and_fillers_say_nothing() {
        let mut words = Vocabulary::of(&["house 1250 a boat the"]);
        let told = |found: Found| match found {
            Found::Word(number) => number.to_string(),
            Found::Other => "other".to_owned(),
            Found::Nothing => "nothing".to_owned(),
        };
        let added = ["Houses", "1,250", "the", "Ä", "house", "lighthouse"].map(|word| told(words.add(word)));
        assert_eq!(added, ["0", "1", "nothing", "nothing", "0", "other"]);
        let found = |word: &str| told(words.find(word, true));
        assert_eq!(
            ["HOUSING", "1250", "the", "boat", "a"].map(found),
            ["0", "1", "nothing", "other", "nothing"]
        );
    }
}
