//! What the words of a text are.

use std::fmt;

use super::fold::fold;
use super::stem::{is_stop_word, stem};

/// Takes a text apart into the words by which it is found.
pub trait Analyzer: fmt::Debug + Send + Sync + 'static {
    /// Calls `each` with the words of `text`, in order. The same for texts and for queries.
    fn words(&self, text: &str, each: &mut dyn FnMut(&str));
}

/// Words of at least three letters `a` to `z` or digits, in lower case; everything else is a gap between words.
///
/// This is how the original of this framework reads texts. `C#`, `AI` and words with accents are not found.
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

/// Words of letters and digits of any script and any length: the default.
///
/// Case and accents do not matter. Of English, German and Romance words the commonest endings are left out, and so are
/// English articles, prepositions and conjunctions. Chinese, Japanese and Korean characters and emoji are words of
/// their own. `C#`, `F#` and `C++` are words. An apostrophe ends a word of one or two letters, and is left out of
/// longer ones. Of a word 64 bytes count.
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

/// The longest word, in bytes.
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

/// A word that is being read.
#[derive(Default)]
struct PendingWord {
    /// In lower case and without accents.
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

    /// A word with accents is never an empty one: `thé` is not `the`.
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

/// The `#` of C# and the `+` of C++: behind one letter, with nothing else behind them.
fn is_sign_of_a_name(word: &str, sign: char, rest: &str) -> bool {
    let is_sign = matches!(sign, '#' | '+');
    is_sign && word.trim_end_matches(sign).len() == 1 && word.len() < 3 && !goes_on(rest)
}

/// Accents that stand beside their letter.
fn is_combining(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Characters that are not written in words with blanks between them: ideographs, kana, hangul, emoji.
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
