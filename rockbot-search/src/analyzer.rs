//! Analyzers: the splitting of texts into terms.

use std::fmt;

use super::english::{Role, role};
use super::fold::fold;
use super::stem::stem;

/// A splitter of texts into terms. Searches find texts by their terms.
pub trait Analyzer: fmt::Debug + Send + Sync + 'static {
    /// Calls `each` with the terms of `text`, in order, each with the word as written. Texts are
    /// found by their terms, and texts that have a word of the query as written rank higher.
    fn words(&self, text: &str, each: &mut dyn FnMut(&str, &str));

    /// Calls `each` with the terms that `query` is searched by, in order. By default these are all
    /// its [`words`](Self::words); an analyzer may leave out words that say little.
    fn query_words(&self, query: &str, each: &mut dyn FnMut(&str, &str)) {
        self.words(query, each);
    }
}

impl<Shared: Analyzer + ?Sized> Analyzer for std::sync::Arc<Shared> {
    fn words(&self, text: &str, each: &mut dyn FnMut(&str, &str)) {
        (**self).words(text, each);
    }

    fn query_words(&self, query: &str, each: &mut dyn FnMut(&str, &str)) {
        (**self).query_words(query, each);
    }
}

/// An analyzer of words of at least three letters `a` to `z` or digits, in lower case; all other
/// characters separate words.
///
/// Compatible with the original of this framework. `C#`, `AI` and words with accents are not found.
#[derive(Debug, Clone, Copy, Default)]
pub struct SeedAnalyzer;

impl Analyzer for SeedAnalyzer {
    fn words(&self, text: &str, each: &mut dyn FnMut(&str, &str)) {
        let mut lower = String::new();
        for word in text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| word.len() >= 3)
        {
            if word.bytes().any(|byte| byte.is_ascii_uppercase()) {
                lower.clear();
                lower.push_str(word);
                lower.make_ascii_lowercase();
                each(&lower, &lower);
            } else {
                each(word, word);
            }
        }
    }
}

/// An analyzer of words of any script and length: the default.
///
/// Folds case and accents, strips the commonest endings of English, German and Romance words
/// (stemming), maps irregular English forms to one word (`went` to `go`), and drops English
/// articles, prepositions and conjunctions (stop words). A query loses its pronouns, auxiliaries
/// and question words too if two other words are left; `Will`, `May` and `US` are kept as names
/// where they are capitalized inside a sentence.
///
/// Names of code are terms as a whole and in parts: `maxRetryCount` is found by
/// `max retry count`. Chinese, Japanese and Korean characters and emoji are terms of their own.
/// `C#`, `F#` and `C++` are terms. An apostrophe ends a word of one or two letters, and is
/// dropped inside of longer words; the `'s` of an owner is dropped with it. The first 64 bytes of
/// a word count.
///
/// ```
/// use rockbot_search::{Analyzer, UnicodeAnalyzer};
///
/// let mut words = Vec::new();
/// UnicodeAnalyzer.words("Don't use C# in the Cafés, 東京!", &mut |term, _| words.push(term.to_owned()));
/// assert_eq!(words, ["dont", "use", "c#", "caf", "東", "京"]);
///
/// words.clear();
/// UnicodeAnalyzer.query_words("Where did I set maxRetries?", &mut |term, _| words.push(term.to_owned()));
/// assert_eq!(words, ["set", "maxretr", "max", "retr"]);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct UnicodeAnalyzer;

/// Maximum length of a term, in bytes.
const MAX_WORD: usize = 64;

/// Maximum length of a word that is read as a run: longer words may have to be cut.
const MAX_PLAIN: usize = 60;

/// Maximum number of parts of a name: a name with more parts, such as a hash, is a term as a
/// whole only.
const MAX_PARTS: usize = 6;

/// Number of content words that a query must have to be searched without its function words.
const ENOUGH: usize = 2;

impl Analyzer for UnicodeAnalyzer {
    fn words(&self, text: &str, each: &mut dyn FnMut(&str, &str)) {
        read(text, &mut |term, written, _| each(term, written));
    }

    fn query_words(&self, query: &str, each: &mut dyn FnMut(&str, &str)) {
        // The terms before there are enough content words, with `true` for a function word: most
        // queries have enough within a few words.
        let mut first: Vec<(String, String, bool)> = Vec::new();
        let mut contents = 0;
        read(query, &mut |term, written, is_function| {
            contents += usize::from(!is_function);
            if contents < ENOUGH {
                first.push((term.to_owned(), written.to_owned(), is_function));
                return;
            }
            let kept = first.drain(..).filter(|(_, _, is_function)| !is_function);
            kept.for_each(|(term, written, _)| each(&term, &written));
            if !is_function {
                each(term, written);
            }
        });
        first.iter().for_each(|(term, written, _)| each(term, written));
    }
}

/// A consumer of terms, each with the word as written and `true` for a function word.
type EachTerm<'e> = &'e mut dyn FnMut(&str, &str, bool);

/// Calls `each` with the terms of `text`, in order.
fn read(text: &str, each: EachTerm<'_>) {
    let mut word = PendingWord::default();
    let mut rest = text.chars();
    let mut is_sentence_start = true;
    loop {
        if let Some(len) = plain_word(rest.as_str()).filter(|_| word.is_empty()) {
            let (plain, behind) = rest.as_str().split_at(len);
            rest = behind.chars();
            word.whole(plain, is_sentence_start, each);
            is_sentence_start = false;
        }
        let Some(c) = rest.next() else { break };
        if is_whole_word(c) {
            word.end(each);
            let mut bytes = [0; 4];
            let sign: &str = c.encode_utf8(&mut bytes);
            each(sign, sign, false);
        } else if c.is_alphanumeric() || is_combining(c) {
            if word.folded.is_empty() {
                word.is_name = c.is_uppercase() && !is_sentence_start;
                is_sentence_start = false;
            }
            word.push(c);
        } else if matches!(c, '\'' | '’') && word.is_possessive_before(rest.as_str()) {
            // Marienau's: a possession is found by the owner's name.
            rest.next();
            word.end(each);
        } else if matches!(c, '\'' | '’') && word.folded.len() > 2 && goes_on(rest.as_str()) {
            // don't, but not l'eau
        } else if is_sign_of_a_name(&word.folded, c, rest.as_str()) {
            word.folded.push(c);
        } else {
            is_sentence_start |= matches!(c, '.' | '!' | '?' | ':' | '"' | '\n');
            word.end(each);
        }
    }
    word.end(each);
}

/// Returns the length of the word that `text` begins with, if it consists of small letters `a` to
/// `z` (the first letter may be a capital) and the character behind it ends it. Most words do:
/// they are read as a run, not character by character.
fn plain_word(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    bytes.first().filter(|first| first.is_ascii_alphabetic())?;
    let rest = bytes[1..]
        .iter()
        .take(MAX_PLAIN)
        .take_while(|byte| byte.is_ascii_lowercase());
    let len = 1 + rest.count();
    let is_ended = match bytes.get(len) {
        Some(b'\'' | b'#' | b'+') => false,
        Some(next) => next.is_ascii() && !next.is_ascii_alphanumeric(),
        None => true,
    };
    (is_ended && len <= MAX_PLAIN).then_some(len)
}

/// The word that is being read.
#[derive(Default)]
struct PendingWord {
    /// Characters so far, in lower case and without accents.
    folded: String,
    has_accents: bool,
    /// The word is capitalized inside a sentence.
    is_name: bool,
    /// Byte offsets of the parts of a name, without the first. If there are more than
    /// [`MAX_PARTS`], the last is overwritten.
    cuts: [u8; MAX_PARTS],
    /// Number of cuts.
    parts: usize,
    last: Letter,
    /// Byte offset of the last character.
    last_at: usize,
}

/// The kind of a character inside a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Letter {
    #[default]
    Lower,
    Upper,
    /// An upper-case letter after another: the last of them may begin a part, as in `HTTPServer`.
    MoreUpper,
    Digit,
}

impl PendingWord {
    fn is_empty(&self) -> bool {
        // A combining accent without a letter leaves its mark on the next word.
        self.folded.is_empty() && !self.has_accents
    }

    /// Emits a [plain word](plain_word) that begins where no word is being read.
    fn whole(&mut self, plain: &str, is_sentence_start: bool, each: EachTerm<'_>) {
        if plain.as_bytes()[0].is_ascii_lowercase() {
            return emit(plain, false, each);
        }
        self.is_name = !is_sentence_start;
        self.folded.push_str(plain);
        self.folded.make_ascii_lowercase();
        self.end(each);
    }

    fn push(&mut self, c: char) {
        if self.folded.len() + 4 > MAX_WORD {
            return;
        }
        if c.is_ascii() {
            self.cut_before(c);
            self.folded.push(c.to_ascii_lowercase());
            return;
        }
        self.has_accents = true;
        if !is_combining(c) {
            self.cut_before(c);
        }
        c.to_lowercase()
            .filter(|c| !is_combining(*c))
            .for_each(|c| fold(c, &mut self.folded));
    }

    /// Begins a part where the kind of characters changes: `max|Retry`, `HTTP|Server`, `gpt|4`.
    fn cut_before(&mut self, c: char) {
        let next = match (c, self.last) {
            ('0'..='9', _) => Letter::Digit,
            (c, Letter::Upper | Letter::MoreUpper) if c.is_uppercase() => Letter::MoreUpper,
            (c, _) if c.is_uppercase() => Letter::Upper,
            _ => Letter::Lower,
        };
        let last = std::mem::replace(&mut self.last, next);
        let last_at = std::mem::replace(&mut self.last_at, self.folded.len());
        let at = match (last, next) {
            (Letter::MoreUpper, Letter::Lower) => last_at,
            (Letter::Lower, Letter::Upper) => self.folded.len(),
            (last, next) if (last == Letter::Digit) != (next == Letter::Digit) => self.folded.len(),
            _ => return,
        };
        if at > 0 {
            self.cuts[self.parts.min(MAX_PARTS - 1)] = at as u8;
            self.parts += 1;
        }
    }

    /// Returns `true` if an apostrophe in front of `rest` ends the word as the owner of something:
    /// `Ada's`, but not `it's` or `what's`.
    fn is_possessive_before(&self, rest: &str) -> bool {
        let behind = rest.strip_prefix(['s', 'S']);
        let is_end = behind.is_some_and(|behind| !goes_on(behind));
        is_end && !self.folded.is_empty() && !matches!(role(&[&self.folded, "s"].concat()), Role::Function)
    }

    /// Emits the word and its parts, without stop words. A word with accents never is one: `thé` is
    /// not `the`.
    fn end(&mut self, each: EachTerm<'_>) {
        if self.folded.is_empty() {
            return;
        }
        self.emit(&self.folded, self.is_name, each);
        if (1..MAX_PARTS).contains(&self.parts) {
            let mut from = 0;
            for to in self.cuts[..self.parts]
                .iter()
                .map(|cut| usize::from(*cut))
                .chain([self.folded.len()])
            {
                let part = &self.folded[from..to];
                // A single letter is a prefix, as in `iPhone`, and says nothing.
                if part.len() > 1 || part.as_bytes()[0].is_ascii_digit() {
                    self.emit(part, false, each);
                }
                from = to;
            }
        }
        self.folded.clear();
        (self.has_accents, self.parts, self.last) = (false, 0, Letter::Lower);
    }

    /// Emits the word or a part of it.
    fn emit(&self, word: &str, is_name: bool, each: EachTerm<'_>) {
        if self.has_accents {
            each(stem(word), word, false);
        } else {
            emit(word, is_name, each);
        }
    }
}

/// Emits a word that is in lower case, unless it is a stop word.
fn emit(word: &str, is_name: bool, each: EachTerm<'_>) {
    match role(word) {
        Role::Content => each(stem(word), word, false),
        Role::FormOf(base) => each(stem(base), word, false),
        Role::Function => each(stem(word), word, !(is_name && word.len() > 1)),
        Role::Stop => {}
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

/// Returns `true` for characters of scripts without spaces between words: ideographs, kana,
/// hangul, emoji.
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
