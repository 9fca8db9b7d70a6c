//! The statements of an answer that rest on text of others alone.
//!
//! A statement is a sentence. It rests on outside text if a number, a name or an address in it
//! stands in such a text and in no text of the user or the host, or if most of its words follow
//! each other there. The finder compares words and understands nothing: a statement in other words
//! than its source's is not found, so the label of the whole answer counts where nothing may be
//! missed.

use std::collections::HashSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::evidence::{Author, Source};
use crate::fast::Fast;
use crate::origin::cut;
use crate::vocabulary::{Found, Vocabulary, split};

/// Maximum length of the text that is read of all outside sources together, in bytes, and of all
/// others together.
const MAX_READ: usize = 2 << 20;

/// Maximum length of an answer that is examined, in bytes.
const MAX_ANSWER: usize = 64 << 10;

/// Maximum number of sources that are compared.
const MAX_SOURCES: usize = 64;

/// Maximum length of a statement in an [`OutsideStatement`], in bytes.
const MAX_STATEMENT: usize = 300;

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
    /// The number of all such pairs, with the words that stand in no outside text.
    all_pairs: usize,
}

/// The words and pairs of an answer that stand in a text.
#[derive(Default)]
struct Standing {
    words: HashSet<usize, Fast>,
    pairs: HashSet<(usize, usize), Fast>,
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
    let texts = latest(sources, |author| author == Author::Outside).take(MAX_SOURCES);
    let texts: Vec<&str> = texts.map(|(_, text)| text).collect();
    let mut words = Vocabulary::of(&texts);
    if !words.may_stand_in(answer) {
        return Vec::new();
    }
    let said: Vec<(&str, Said)> = sentences(answer)
        .map(|range| (&answer[range.clone()], said_in(&answer[range], &mut words)))
        .collect();
    if words.is_empty() {
        return Vec::new();
    }
    let outside = standing(&words, sources);
    if outside.is_empty() {
        return Vec::new();
    }
    let mut known = Standing::default();
    for (_, text) in latest(sources, |author| author != Author::Outside) {
        known.add(&words, text);
    }
    let judge = |(sentence, said): &(&str, Said)| {
        let found = |text: &Standing| said.found(text, &known);
        let best = outside.iter().map(|(name, text)| (name, found(text)));
        let (name, (specific, pairs)) = best.max_by_key(|(_, (specific, pairs))| specific + pairs)?;
        let is_foreign = specific > 0 || pairs >= MIN_PAIRS && 2 * pairs >= said.all_pairs;
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
    fn add(&mut self, words: &Vocabulary, text: &str) {
        let mut before = None;
        for written in split(text) {
            match words.find(written, before.is_some()) {
                Found::Nothing => {}
                Found::Other => before = None,
                Found::Word(number) => {
                    self.words.insert(number);
                    self.pairs.extend(before.map(|before| (before, number)));
                    before = Some(number);
                }
            }
        }
    }
}

/// Returns for each outside text the words of the answer that stand in it; texts without any are left
/// out.
fn standing<'a>(words: &Vocabulary, sources: &'a [Source<'_>]) -> Vec<(&'a str, Standing)> {
    let outside = latest(sources, |author| author == Author::Outside).take(MAX_SOURCES);
    let outside = outside.map(|(name, text)| {
        let mut standing = Standing::default();
        standing.add(words, text);
        (name, standing)
    });
    outside.filter(|(_, standing)| !standing.words.is_empty()).collect()
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
    let mut rest = 0;
    let next = move || {
        let start = rest + text[rest..].find(|char: char| !char.is_whitespace())?;
        let is_end = |char: char| matches!(char, '\n' | '.' | '!' | '?' | '。' | '！' | '？');
        let ends = text[start..].match_indices(is_end).map(|(at, sign)| (start + at, sign));
        let ends = ends.map(|(at, sign)| if sign == "\n" { at } else { at + sign.len() });
        let mut ends = ends.filter(|end| text[*end..].chars().next().is_none_or(char::is_whitespace));
        rest = ends.next().unwrap_or(text.len());
        Some(start..rest)
    };
    std::iter::from_fn(next)
}

/// Returns the words of a sentence that say something. New words get the next number.
fn said_in(sentence: &str, words: &mut Vocabulary) -> Said {
    let mut said = Said::default();
    let mut before = None;
    let mut is_first = true;
    for written in split(sentence) {
        let number = match words.add(written) {
            Found::Nothing => continue,
            Found::Other => None,
            Found::Word(number) => Some(number),
        };
        said.all_pairs += usize::from(!is_first);
        said.pairs.extend(before.zip(number));
        said.specific.extend(number.filter(|_| is_specific(written, is_first)));
        before = number;
        is_first = false;
    }
    said
}

/// Returns `true` for a number, an address, an id, or a name, which is no first word of a sentence.
fn is_specific(written: &str, is_first: bool) -> bool {
    let is_mark = |byte: u8| byte.is_ascii_digit() || byte == b'@' || byte == b'.';
    !is_first && written.starts_with(char::is_uppercase) || written.bytes().any(is_mark)
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
    proptest::proptest! {
        #[test]
        fn short_texts_are_judged_as_long_texts(
            words in proptest::collection::vec("(the|Elm|elm|street|rents?|1,250|1250|Ä|-7|loud(ly)?|\\.|a\\.)", 0..12),
            outside in proptest::collection::vec("(the|Elm|street|rent|1250|1,250\\.|Ärzte|-7|loud|\n)", 0..8),
        ) {
            let (answer, text) = (words.join(" "), outside.join(" "));
            let long = "zz ".repeat(8 << 10);
            let short = [Source::new(Author::Outside, "page", text.as_str())];
            let padded = [Source::new(Author::Outside, "page", text.as_str()), Source::new(Author::Outside, "long", long.as_str())];
            proptest::prop_assert_eq!(found(&answer, &short), found(&answer, &padded));
        }
    }
}
