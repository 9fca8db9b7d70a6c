//! Detects messages that correct the answer before them.

use super::phrases::{
    ABOUT_ELSE, ADVERBS, AFTER_NO, AGAIN, ANSWER_IS, ANSWER_IS_NOT, ARTICLES, DENIALS, FAILED, INTERJECTIONS, MEANT,
    NOT_A_THING, NOT_AFTER_NO, NOT_FAILED, NOT_MEANT, RIGHT, WRONG, YOU_ERRED,
};

/// Length of the examined beginning of a message, in characters: corrections stand at the
/// beginning.
const OPENING: usize = 300;

/// Length of the examined part of the answer, in characters.
const ANSWER: usize = 20_000;

/// Maximum number of words that are replaced.
const REPLACED_WORDS: usize = 4;

/// The kind of a correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Correction {
    /// The answer is wrong: "that's not right".
    Wrong,
    /// The user meant another question: "I meant the other file".
    Misunderstood,
    /// A detail of the answer is wrong: "it's Tuesday, not Monday".
    Replaced,
    /// The advice of the answer did not help: "that didn't work".
    Failed,
}

impl Correction {
    /// Describes the correction in a sentence.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Wrong => "The user said that the answer was wrong.",
            Self::Misunderstood => "The user had meant something else.",
            Self::Replaced => "The user put something in the answer right.",
            Self::Failed => "The user said that the answer did not help.",
        }
    }
}

/// Detects whether and how `message` corrects `answer`, the message before it.
///
/// It prefers a missed correction to a false one, because a false one teaches the agent something
/// wrong. So it knows set phrases of English only, and looks for them at the beginning of the
/// first sentence, after words such as "sorry" or "no". A message that begins with a quotation is
/// no correction. When the answer ended with a question, a phrase that would correct a statement
/// may just answer the question: then only phrases count that plainly say that something went
/// wrong. "Not X" and "not X but Y" count when the answer contains X, and does not contain Y.
///
/// ```
/// use rockbot_memory::signals::{Correction, correction};
///
/// let answer = "Your meeting is on Monday.";
/// assert_eq!(correction("No, that's not what I asked.", answer), Some(Correction::Wrong));
/// assert_eq!(correction("It's on Tuesday, not Monday", answer), Some(Correction::Replaced));
/// assert_eq!(correction("No problem, thanks!", answer), None);
/// ```
pub fn correction(message: &str, answer: &str) -> Option<Correction> {
    if answer.trim().is_empty() || message.trim_start().starts_with(['"', '\'', '“', '‘', '„', '>', '`']) {
        return None;
    }
    let opening = Opening::of(&plain(message, OPENING))?;
    let text = &*opening.text;
    let asked = asks(answer);
    let after = |phrases, unless| eat(text, phrases).is_some_and(|rest| eat(rest, unless).is_none());
    let found = [
        (Correction::Wrong, opening.says_wrong()),
        (Correction::Failed, after(FAILED, NOT_FAILED)),
        (Correction::Failed, !asked && after(AGAIN, NOT_FAILED)),
        (Correction::Misunderstood, !asked && after(MEANT, NOT_MEANT)),
        (
            Correction::Misunderstood,
            !asked && opening.denies && after(AFTER_NO, NOT_AFTER_NO),
        ),
        (Correction::Replaced, !asked && replaces(text, answer)),
    ];
    found.into_iter().find_map(|(how, does)| does.then_some(how))
}

/// The first sentence with content.
struct Opening {
    /// The sentence without interjections.
    text: String,
    denies: bool,
    is_question: bool,
}

impl Opening {
    fn of(message: &str) -> Option<Self> {
        let mut rest = message;
        let mut denies = false;
        while !rest.is_empty() {
            let (sentence, end, after) = sentence(rest);
            let (text, denied) = without_interjections(sentence);
            denies |= denied;
            if !text.is_empty() {
                return Some(Self {
                    text: text.to_owned(),
                    denies,
                    is_question: end == Some('?'),
                });
            }
            rest = after;
        }
        None
    }

    fn says_wrong(&self) -> bool {
        let text = self.text.as_str();
        let is_not = |rest| eat(past(rest, ADVERBS), RIGHT);
        let verdict = match (eat(text, ANSWER_IS_NOT), eat(text, ANSWER_IS)) {
            (Some(rest), _) => is_not(rest),
            (None, Some(rest)) => {
                let rest = past(rest, ADVERBS);
                eat(rest, WRONG).or_else(|| eat(rest, &["not"]).and_then(is_not))
            }
            (None, None) => eat(text, YOU_ERRED).or_else(|| eat(text, &["not"]).and_then(what_i_asked)),
        };
        // "Wrong!" stands alone; "wrong number" is about a number.
        let exclaimed = || eat(text, WRONG).filter(|rest| !rest.starts_with(char::is_alphanumeric));
        verdict.or_else(exclaimed).is_some_and(|rest| {
            let is_asked = rest.is_empty() && self.is_question;
            !is_asked && eat(rest, ABOUT_ELSE).is_none()
        })
    }
}

/// Returns the rest after "what I asked" and its variants.
fn what_i_asked(text: &str) -> Option<&str> {
    let text = past(text, ADVERBS);
    text.starts_with("what ").then(|| eat(text, RIGHT)).flatten()
}

/// Returns `true` if `text` replaces something in `answer`.
fn replaces(text: &str, answer: &str) -> bool {
    let Some((before, wrong)) = text.split_once("not ") else {
        return false;
    };
    let (wrong, right) = match wrong.split_once(" but ") {
        Some((wrong, right)) => (wrong, right),
        None if before.trim_end().ends_with([',', '-', '–', '—']) => (wrong, before),
        None => return false,
    };
    let wrong = past(wrong, ARTICLES);
    let wrong: Vec<_> = words(wrong.split([',', ':', '(']).next().unwrap_or_default()).collect();
    let right: Vec<_> = words(right).collect();
    if wrong.is_empty() || wrong.len() > REPLACED_WORDS || NOT_A_THING.contains(&wrong[0]) {
        return false;
    }
    let answer = plain(answer, ANSWER);
    let said: Vec<_> = words(&answer).collect();
    // The replacement has as many words as the replaced part: "4 pm, not 3 pm".
    let mut right = right[right.len().saturating_sub(wrong.len())..].iter();
    said.windows(wrong.len()).any(|said| said == wrong) && right.any(|word| !said.contains(word))
}

/// Returns `true` if an answer ends with a question.
fn asks(answer: &str) -> bool {
    answer
        .trim_end_matches(|c: char| !c.is_alphanumeric() && c != '?')
        .ends_with('?')
}

/// Normalizes the first `len` characters: lower case, no apostrophes, which many users leave out.
fn plain(text: &str, len: usize) -> String {
    let letters = text.chars().take(len).filter(|c| !matches!(c, '\'' | '’' | '‘' | '`'));
    letters.flat_map(char::to_lowercase).collect()
}

/// Splits a text into its first sentence, the sentence's end mark, and the rest.
fn sentence(text: &str) -> (&str, Option<char>, &str) {
    let ends = |(at, c): &(usize, char)| match c {
        '!' | '?' | '\n' | ';' => true,
        // Not the point inside a number.
        '.' => !text[at + 1..].starts_with(char::is_alphanumeric),
        _ => false,
    };
    match text.char_indices().find(ends) {
        Some((at, end)) => (&text[..at], Some(end), &text[at + end.len_utf8()..]),
        None => (text, None, ""),
    }
}

/// Removes interjections, and reports whether they deny something.
fn without_interjections(sentence: &str) -> (&str, bool) {
    let marks = |c: char| !c.is_alphanumeric();
    let mut text = sentence.trim_start_matches(marks);
    let mut denies = false;
    while let Some(rest) = eat(text, INTERJECTIONS) {
        denies |= eat(text, DENIALS).is_some();
        text = rest.trim_start_matches(marks);
    }
    (text, denies)
}

/// Strips the first of `phrases` that `text` begins with, and the white space after it.
fn eat<'a>(text: &'a str, phrases: &[&str]) -> Option<&'a str> {
    // "no-one" is one word.
    let ends_word = |rest: &&str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-');
    let after = |phrase: &&str| text.strip_prefix(*phrase).filter(ends_word);
    phrases.iter().find_map(after).map(str::trim_start)
}

/// Strips the words of `some` at the beginning of `text`.
fn past<'a>(mut text: &'a str, some: &[&str]) -> &'a str {
    while let Some(rest) = eat(text, some) {
        text = rest;
    }
    text
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
}
