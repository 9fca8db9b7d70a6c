//! What the words of a text are.

use std::fmt;

use super::fold::fold;

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
/// Case and accents do not matter. An apostrophe inside a word is left out. Chinese, Japanese and Korean
/// characters and emoji are words of their own. `C#`, `F#` and `C++` are words. Of a word 64 bytes count.
///
/// ```
/// use rockbot_core::search::{Analyzer, UnicodeAnalyzer};
///
/// let mut words = Vec::new();
/// UnicodeAnalyzer.words("Don't use C# in the Café, 東京!", &mut |word| words.push(word.to_owned()));
/// assert_eq!(words, ["dont", "use", "c#", "in", "the", "cafe", "東", "京"]);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct UnicodeAnalyzer;

/// The longest word, in bytes.
const MAX_WORD: usize = 64;

impl Analyzer for UnicodeAnalyzer {
    fn words(&self, text: &str, each: &mut dyn FnMut(&str)) {
        let mut word = String::with_capacity(MAX_WORD);
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            if is_whole_word(c) {
                end(&mut word, each);
                each(c.encode_utf8(&mut [0; 4]));
            } else if c.is_alphanumeric() || is_combining(c) {
                push(&mut word, c);
            } else if matches!(c, '\'' | '’') && !word.is_empty() && goes_on(rest.as_str()) {
                // don't, l'eau
            } else if is_sign_of_a_name(&word, c, rest.as_str()) {
                word.push(c);
            } else {
                end(&mut word, each);
            }
        }
        end(&mut word, each);
    }
}

fn end(word: &mut String, each: &mut dyn FnMut(&str)) {
    if !word.is_empty() {
        each(word);
        word.clear();
    }
}

fn push(word: &mut String, c: char) {
    if word.len() + 4 > MAX_WORD {
        return;
    }
    if c.is_ascii() {
        word.push(c.to_ascii_lowercase());
    } else if !is_combining(c) {
        c.to_lowercase()
            .filter(|c| !is_combining(*c))
            .for_each(|c| fold(c, word));
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
