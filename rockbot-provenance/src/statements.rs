//! The statements of an answer that rest on text of others alone.
//!
//! A statement is a sentence. It rests on outside text if a number, a name or an address in it
//! stands in such a text and in no text of the user or the host, or if most of its words follow
//! each other there. The finder compares words and understands nothing: a statement in other words
//! than its source's is not found, so the label of the whole answer counts where nothing may be
//! missed.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::action::{is_filler, stem_of};
use crate::evidence::{Author, Source};
use crate::origin::cut;

/// Maximum length of the text that is read of all outside sources together, in bytes, and of all
/// others together.
const MAX_READ: usize = 2 << 20;

/// Maximum length of an answer that is examined, in bytes.
const MAX_ANSWER: usize = 64 << 10;

/// Maximum number of sources that are compared.
const MAX_SOURCES: usize = 64;

/// Maximum length of a statement in an [`OutsideStatement`], in bytes.
const MAX_STATEMENT: usize = 300;

/// Minimum length of a word that says something, in bytes.
const MIN_WORD: usize = 3;

/// Minimum number of pairs of words that make a statement foreign without a name or a number.
const MIN_PAIRS: usize = 2;

/// A statement of an answer that rests on text of others alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OutsideStatement {
    /// The statement, as the answer has it; cut after 300 bytes.
    pub statement: String,
    /// The name of the text that has most of it, such as `get_webpage (example.com)`.
    pub source: String,
}

/// The words of a sentence, by their numbers.
#[derive(Default)]
struct Said {
    /// The numbers, names and addresses.
    specific: Vec<usize>,
    /// The words that follow each other, without the words between them that say nothing.
    pairs: Vec<(usize, usize)>,
}

/// The words and pairs of an answer that stand in a text.
#[derive(Default)]
struct Standing {
    words: HashSet<usize>,
    pairs: HashSet<(usize, usize)>,
}

/// Finds the statements of an answer that rest on outside text alone, in order.
///
/// At most 64 KiB of the answer are examined, and of the texts of others, as of the
/// trusted texts, the last 2 MiB that were read.
pub fn outside_statements(answer: &str, sources: &[Source<'_>]) -> Vec<OutsideStatement> {
    if !sources.iter().any(|source| source.author == Author::Outside) {
        return Vec::new();
    }
    let answer = &answer[..answer.floor_char_boundary(MAX_ANSWER)];
    let mut numbers = HashMap::new();
    let said: Vec<(&str, Said)> = sentences(answer)
        .map(|range| (&answer[range.clone()], said_in(&answer[range], &mut numbers)))
        .collect();
    let (known, outside) = standing(&numbers, sources);
    let judge = |(sentence, said): &(&str, Said)| {
        let found = |text: &Standing| said.found(text, &known);
        let best = outside.iter().map(|(name, text)| (name, found(text)));
        let (name, (specific, pairs)) = best.max_by_key(|(_, (specific, pairs))| specific + pairs)?;
        let is_foreign = specific > 0 || pairs >= MIN_PAIRS && 2 * pairs >= said.pairs.len();
        is_foreign.then(|| OutsideStatement {
            statement: cut(sentence, MAX_STATEMENT),
            source: (*name).to_owned(),
        })
    };
    said.iter().filter_map(judge).collect()
}

impl Said {
    /// Counts the specific words and the pairs that stand in `text` and not in the `known` texts.
    fn found(&self, text: &Standing, known: &Standing) -> (usize, usize) {
        let is_word = |word: &&usize| text.words.contains(word) && !known.words.contains(word);
        let is_pair = |pair: &&(usize, usize)| text.pairs.contains(pair) && !known.pairs.contains(pair);
        (
            self.specific.iter().filter(is_word).count(),
            self.pairs.iter().filter(is_pair).count(),
        )
    }
}

impl Standing {
    fn add(&mut self, numbers: &HashMap<String, usize>, text: &str) {
        let mut before = None;
        for word in compared(text) {
            let number = numbers.get(&*word).copied();
            self.words.extend(number);
            self.pairs.extend(before.zip(number));
            before = number;
        }
    }
}

/// Returns the words of the answer that stand in texts of the user and the host, and for each
/// outside text the words that stand in it.
fn standing<'a>(numbers: &HashMap<String, usize>, sources: &'a [Source<'_>]) -> (Standing, Vec<(&'a str, Standing)>) {
    let mut known = Standing::default();
    for (_, text) in latest(sources, |author| author != Author::Outside) {
        known.add(numbers, text);
    }
    let outside = latest(sources, |author| author == Author::Outside).take(MAX_SOURCES);
    let outside = outside.map(|(name, text)| {
        let mut standing = Standing::default();
        standing.add(numbers, text);
        (name, standing)
    });
    (known, outside.collect())
}

/// Returns names and texts of the sources by wanted authors, the last read first, up to the maximum.
fn latest<'a>(
    sources: &'a [Source<'_>],
    is_wanted: impl Fn(Author) -> bool + 'a,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let mut left = MAX_READ;
    let wanted = sources.iter().rev().filter(move |source| is_wanted(source.author));
    wanted.map(move |source| {
        let text = &source.text[..source.text.floor_char_boundary(left)];
        left -= text.len();
        (&*source.name, text)
    })
}

/// Returns the places of the sentences of a text. A line ends a sentence, too.
fn sentences(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut rest = 0..text.len();
    let next = move || {
        let start = rest.start + text[rest.clone()].find(|char: char| !char.is_whitespace())?;
        let mut ends = text[start..].char_indices().peekable();
        let mut end = text.len();
        while let Some((at, char)) = ends.next() {
            let is_last = ends.peek().is_none_or(|(_, next)| next.is_whitespace());
            if char == '\n' || ".!?。！？".contains(char) && is_last {
                end = start + at + if char == '\n' { 0 } else { char.len_utf8() };
                break;
            }
        }
        rest.start = end;
        Some(start..end)
    };
    std::iter::from_fn(next)
}

/// Returns the words of a sentence that say something. New words get the next number.
fn said_in(sentence: &str, numbers: &mut HashMap<String, usize>) -> Said {
    let mut said = Said::default();
    let mut before = None;
    let mut is_first = true;
    for written in split(sentence) {
        let Some(word) = comparable(written) else {
            continue;
        };
        let is_name = !is_first && written.starts_with(char::is_uppercase);
        let is_specific = is_name || written.contains(|char: char| char.is_ascii_digit() || "@.".contains(char));
        let next = numbers.len();
        let number = *numbers.entry(word.into_owned()).or_insert(next);
        if is_specific {
            said.specific.push(number);
        }
        said.pairs.extend(before.map(|before| (before, number)));
        before = Some(number);
        is_first = false;
    }
    said
}

/// Returns the words of a text in the form in which they are compared.
fn compared(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    split(text).filter_map(comparable)
}

/// Splits a text at white space and at signs that stand within no number, address or id.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let is_sign = |char: char| {
        matches!(
            char,
            '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '|' | ';' | ':' | '*' | '!' | '?' | '='
        ) || matches!(char, '“' | '”' | '„' | '‘' | '’' | '«' | '»' | '…' | '—')
    };
    let words = text.split(move |char: char| is_sign(char) || char.is_whitespace());
    words.map(|word| word.trim_matches(|char: char| !char.is_alphanumeric()))
}

/// Returns the form of a word in which it is compared: in lower case, without the endings of verbs
/// and nouns; a number or an id without the signs within it. `None` if it says nothing.
fn comparable(word: &str) -> Option<Cow<'_, str>> {
    let says_something = |word: &str| word.len() >= MIN_WORD && !is_filler(word);
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return says_something(word).then(|| stem_of(word).into());
    }
    if word.contains(|char: char| char.is_ascii_digit()) {
        let plain: String = word.chars().filter(|char| char.is_alphanumeric()).collect();
        return (plain.len() > 1).then(|| plain.to_lowercase().into());
    }
    let word = word.to_lowercase();
    says_something(&word).then(|| stem_of(&word).to_owned().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(answer: &str, sources: &[Source<'_>]) -> Vec<(String, String)> {
        let found = outside_statements(answer, sources).into_iter();
        found.map(|found| (found.statement, found.source)).collect()
    }

    fn sources() -> [Source<'static>; 4] {
        [
            Source::new(Author::Host, "host", "You are the assistant of Ann, who lives in Oslo."),
            Source::new(
                Author::User,
                "user",
                "What does the flat at Elm Street cost? I have 900 euros.",
            ),
            Source::new(
                Author::Outside,
                "get_webpage (flats.example)",
                "Elm Street 5: rent 1,250 euros, from 2027-01-01. Ask Mr. Miller, miller@flats.example. The \
                 heating is loud at night.",
            ),
            Source::new(
                Author::Outside,
                "read_mail",
                "The deposit is waived for pensioners, says Eve.",
            ),
        ]
    }

    #[test]
    fn a_statement_with_a_number_or_a_name_of_an_outside_text_rests_on_it() {
        let answer = "The flat at Elm Street costs 1250 euros. You have 900 euros.\n- Ask Miller (miller@flats.example).\nGood \
                      luck, Ann in Oslo!";
        let page = "get_webpage (flats.example)".to_owned();
        assert_eq!(
            found(answer, &sources()),
            [
                ("The flat at Elm Street costs 1250 euros.".to_owned(), page.clone()),
                ("- Ask Miller (miller@flats.example).".to_owned(), page),
            ]
        );
    }

    #[test]
    fn a_statement_in_the_words_of_an_outside_text_rests_on_it() {
        assert_eq!(
            found(
                "The heating is loud at night. So the deposit is waived for pensioners.",
                &sources()
            ),
            [
                (
                    "The heating is loud at night.".to_owned(),
                    "get_webpage (flats.example)".to_owned()
                ),
                (
                    "So the deposit is waived for pensioners.".to_owned(),
                    "read_mail".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn an_answer_in_words_of_its_own_and_of_the_user_rests_on_nothing() {
        assert_eq!(
            found(
                "Elm Street is too expensive for you with 900 euros, I think.",
                &sources()
            ),
            []
        );
        assert_eq!(found("The rent is 1250 euros.", &sources()[..2]), []);
        assert_eq!(found("", &sources()), []);
    }

    #[test]
    fn what_was_read_last_is_read_first_and_no_more_than_the_limit() {
        let long = "x ".repeat(MAX_READ);
        let sources = [
            Source::new(Author::Outside, "early", "The secret number is 4711."),
            Source::new(Author::Outside, "late", long.as_str()),
        ];
        assert_eq!(found("It is 4711.", &sources), []);
        let own = Source::new(Author::User, "user", "I pay 900 euros.");
        let long = "900 ".repeat(MAX_READ / 2);
        let late = Source::new(Author::Outside, "late", long.as_str());
        assert_eq!(found("You pay 900 euros.", &[own, late]), []);
        let hostile = "é!?.\u{200b}".repeat(1 << 17);
        assert_eq!(outside_statements(&hostile, &sources), []);
    }
}
