//! Analyzers: the splitting of texts into terms.

use std::fmt;

use super::fold::fold;
use super::stem::{is_stop_word, stem};

/// A splitter of texts into the terms by which searches find them.
pub trait Analyzer: fmt::Debug + Send + Sync + 'static {
    /// Calls `each` with the terms of `text`, in order. Texts and queries are analyzed alike.
    fn words(&self, text: &str, each: &mut dyn FnMut(&str));
}

impl<Shared: Analyzer + ?Sized> Analyzer for std::sync::Arc<Shared> {
    fn words(&self, text: &str, each: &mut dyn FnMut(&str)) {
        (**self).words(text, each);
    }
}

/// An analyzer of words of at least three letters `a` to `z` or digits, in lower case; all other characters
/// separate words.
///
/// Compatible with the original of this framework. `C#`, `AI` and words with accents are not found.
#[derive(Debug, Clone, Copy, Default)]
pub struct SeedAnalyzer;

impl Analyzer for SeedAnalyzer {
    fn words(&self, text: &str, each: &mut dyn FnMut(&str)) {
        let mut lower = String::new();
        for word in text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| word.len() >= 3)
        {
            if word.bytes().any(|byte| byte.is_ascii_uppercase()) {
                lower.clear();
                lower.push_str(word);
                lower.make_ascii_lowercase();
                each(&lower);
            } else {
                each(word);
            }
        }
    }
}

/// An analyzer of words of any script and length: the default.
///
/// Folds case and accents, strips the commonest endings of English, German and Romance words (stemming), and
/// drops English articles, prepositions and conjunctions (stop words). Chinese, Japanese and Korean characters
/// and emoji are terms of their own. `C#`, `F#` and `C++` are terms. An apostrophe ends a word of one or two
/// letters, and is dropped inside of longer ones. The first 64 bytes of a word count.
///
/// ```
/// use rockbot_core::search::{Analyzer, UnicodeAnalyzer};
///
/// let mut words = Vec::new();
/// UnicodeAnalyzer.words("Don't use C# in the Cafés, 東京!", &mut |word| words.push(word.to_owned()));
/// assert_eq!(words, ["dont", "use", "c#", "caf", "東", "京"]);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct UnicodeAnalyzer;

/// Maximum length of a term, in bytes.
const MAX_WORD: usize = 64;

impl Analyzer for UnicodeAnalyzer {
    fn words(&self, text: &str, each: &mut dyn FnMut(&str)) {
        let mut word = PendingWord::default();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            if is_whole_word(c) {
                word.end(each);
                each(c.encode_utf8(&mut [0; 4]));
            } else if c.is_alphanumeric() || is_combining(c) {
                word.push(c);
            } else if matches!(c, '\'' | '’') && word.folded.len() > 2 && goes_on(rest.as_str()) {
                // don't, but not l'eau
            } else if is_sign_of_a_name(&word.folded, c, rest.as_str()) {
                word.folded.push(c);
            } else {
                word.end(each);
            }
        }
        word.end(each);
    }
}

/// The word that is being read.
#[derive(Default)]
struct PendingWord {
    /// Characters so far, in lower case and without accents.
    folded: String,
    has_accents: bool,
}

impl PendingWord {
    fn push(&mut self, c: char) {
        if self.folded.len() + 4 > MAX_WORD {
            return;
        }
        if c.is_ascii() {
            self.folded.push(c.to_ascii_lowercase());
            return;
        }
        self.has_accents = true;
        c.to_lowercase()
            .filter(|c| !is_combining(*c))
            .for_each(|c| fold(c, &mut self.folded));
    }

    /// Emits the word, unless it is a stop word. A word with accents never is one: `thé` is not `the`.
    fn end(&mut self, each: &mut dyn FnMut(&str)) {
        if !self.folded.is_empty() && (self.has_accents || !is_stop_word(&self.folded)) {
            each(stem(&self.folded));
        }
        self.folded.clear();
        self.has_accents = false;
    }
}

fn goes_on(rest: &str) -> bool {
    rest.starts_with(char::is_alphanumeric)
}

/// Returns `true` for the `#` of C# and the `+` of C++: after one letter, at the end of the word.
fn is_sign_of_a_name(word: &str, sign: char, rest: &str) -> bool {
    let is_sign = matches!(sign, '#' | '+');
    is_sign && word.trim_end_matches(sign).len() == 1 && word.len() < 3 && !goes_on(rest)
}

/// Returns `true` for combining accents, which follow their letter.
fn is_combining(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Returns `true` for characters of scripts without spaces between words: ideographs, kana, hangul, emoji.
fn is_whole_word(c: char) -> bool {
    matches!(c,
        '\u{2600}'..='\u{27bf}'
        | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{1f000}'..='\u{1faff}'
        | '\u{20000}'..='\u{3ffff}')
}
