//! The check that a merged text says all that its sources say: names, numbers, dates and
//! abbreviations.

use std::collections::BTreeSet;

/// English names of the months, to compare a date in words with a date in digits.
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Capitalized words at the beginning of a sentence that are no names.
const OPENERS: [&str; 36] = [
    "the", "a", "an", "his", "her", "their", "its", "our", "my", "your", "this", "that", "these", "those", "it", "he",
    "she", "they", "we", "there", "in", "on", "at", "for", "with", "when", "if", "every", "each", "all", "no", "not",
    "some", "from", "to", "user",
];

/// Words that a text writes in lower case: at the beginning of a sentence these words are no
/// names.
#[derive(Debug, Default)]
pub(super) struct Vocabulary(BTreeSet<String>);

impl Vocabulary {
    /// Collects the words that `texts` write in lower case.
    pub(super) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let words = texts.into_iter().flat_map(words);
        let lower = words.filter(|word| word.chars().next().is_some_and(char::is_lowercase));
        Self(lower.map(str::to_owned).collect())
    }

    fn has(&self, word: &str) -> bool {
        OPENERS.contains(&word) || self.0.contains(word)
    }
}

/// Returns the names, numbers, dates and abbreviations of `source` that `merged` lacks.
///
/// A word counts if it has a digit or a capital letter. The first word of a sentence counts, too,
/// unless the vocabulary has it in lower case. A date in digits equals a date in words:
/// `2026-05-01` is `1 May 2026`.
pub(super) fn missing(source: &str, merged: &str, vocabulary: &Vocabulary) -> Vec<String> {
    let said = said(merged);
    let mut missing: Vec<String> = Vec::new();
    for (word, opens) in sentence_words(source) {
        let lower = word.to_lowercase();
        let is_said = said.contains(&lower) || is_date_in(word, &said);
        if !is_said && is_telling(word, opens, vocabulary) && !missing.contains(&lower) {
            missing.push(lower);
        }
    }
    missing
}

/// Returns the names, numbers, dates and abbreviations of `text` that no source has: a model made
/// them up. A capital at the beginning of a sentence shows no name here.
pub(super) fn made_up<'a>(text: &str, sources: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let said: BTreeSet<_> = sources.into_iter().flat_map(said).collect();
    let anything = Vocabulary::default();
    let mut made_up = Vec::new();
    for (word, opens) in sentence_words(text) {
        let lower = word.to_lowercase();
        let has_opening = opens && word.starts_with(char::is_uppercase);
        let rest: String = word.chars().skip(usize::from(has_opening)).collect();
        let is_known = said.contains(&lower) || is_date_in(word, &said) || lower == "i";
        if is_telling(&rest, false, &anything) && !is_known && !made_up.contains(&lower) {
            made_up.push(lower);
        }
    }
    made_up
}

/// Returns the names, numbers, dates and abbreviations of a text, in lower case.
pub(super) fn telling(text: &str, vocabulary: &Vocabulary) -> BTreeSet<String> {
    let words = sentence_words(text).filter(|(word, opens)| is_telling(word, *opens, vocabulary));
    words.map(|(word, _)| word.to_lowercase()).collect()
}

/// Returns `true` for a word that a merged text must not lose.
fn is_telling(word: &str, opens: bool, vocabulary: &Vocabulary) -> bool {
    let mut capitals = word.chars().filter(|c| c.is_uppercase());
    let first = capitals.next().is_some();
    let second = capitals.next().is_some();
    if word.chars().any(|c| c.is_numeric()) || second {
        return true;
    }
    first && !(opens && vocabulary.has(&word.to_lowercase()))
}

/// Returns the words of a text in lower case, with the parts of its dates.
fn said(text: &str) -> BTreeSet<String> {
    let mut said = BTreeSet::new();
    for word in words(text) {
        let lower = word.to_lowercase();
        // `05` and `5` are the same day.
        let plain = lower.trim_start_matches('0').to_owned();
        said.extend(date(word).into_iter().flatten());
        said.extend([lower, plain]);
    }
    said
}

/// Returns `true` for a date in digits whose parts are among these words.
fn is_date_in(word: &str, said: &BTreeSet<String>) -> bool {
    date(word).is_some_and(|date| date.iter().all(|part| said.contains(part)))
}

/// Returns year, month as a word and day of a date in digits such as `2026-05-01`.
fn date(word: &str) -> Option<[String; 3]> {
    let mut parts = word.split('-');
    let year = parts.next()?;
    let month = parts.next()?;
    let day = parts.next()?;
    let is_number = |part: &str, len: usize| part.len() == len && part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.next().is_some() || !is_number(year, 4) || !is_number(month, 2) || !is_number(day, 2) {
        return None;
    }
    let month = MONTHS.get(month.parse::<usize>().ok()?.checked_sub(1)?)?;
    Some([
        year.to_owned(),
        (*month).to_owned(),
        day.trim_start_matches('0').to_owned(),
    ])
}

/// Returns the words of a text, without the punctuation around them.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    sentence_words(text).map(|(word, _)| word)
}

/// Returns each word with `true` if it opens a sentence.
fn sentence_words(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut opens = true;
    text.split_whitespace().filter_map(move |raw| {
        // Signs before a number belong to it.
        let word =
            raw.trim_start_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '+' | '$' | '€' | '£' | '#'));
        let word = word.trim_end_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '%' | '€' | '£' | '+' | '#'));
        let word = word.strip_suffix("'s").or(word.strip_suffix("’s")).unwrap_or(word);
        let is_first = std::mem::replace(&mut opens, raw.ends_with(['.', '!', '?', ':']));
        word.chars().any(char::is_alphanumeric).then_some((word, is_first))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, merged: &str, expected: &[&str]) {
        let vocabulary = Vocabulary::of(["the user likes green tea"]);
        assert_eq!(missing(source, merged, &vocabulary), expected, "{source} -> {merged}");
    }

    #[test]
    fn a_merged_text_keeps_names_numbers_and_abbreviations() {
        check("Miso sleeps.", "The cat sleeps.", &["miso"]);
        check("Miso sleeps.", "Miso sleeps a lot.", &[]);
        check("Likes green tea.", "The user prefers tea.", &[]);
        check("Works for the BBC since 2019.", "works there", &["bbc", "2019"]);
        check("It is -5 degrees, not 5.", "It is 5 degrees.", &["-5"]);
        check("Pays $40 or 12% for C#.", "Pays 40 or 12 for C.", &["$40", "12%", "c#"]);
        check("Ada's cat", "the cat of Ada", &[]);
    }

    #[test]
    fn a_date_in_digits_equals_one_in_words() {
        check("Born on 2026-05-01.", "Born on 1 May 2026.", &[]);
        check("Born on 1 May 2026.", "Born on 2026-05-01.", &[]);
        check("Born on 2026-05-01.", "Born on 2 May 2026.", &["2026-05-01"]);
        check("Born on 2026-05-01.", "Born in May 2026.", &["2026-05-01"]);
    }

    #[test]
    fn names_and_numbers_that_no_source_has_are_made_up() {
        let check = |text: &str, expected: &[&str]| {
            let sources = ["My sister Ada moved to Oslo on 1 May 2026.", "She works for the BBC."];
            assert_eq!(made_up(text, sources), expected, "{text}");
        };
        check("Ada lives in Oslo since 2026-05-01. She works there.", &[]);
        check("The user's sister works for the BBC.", &[]);
        check("Ada lives in Bergen with 2 cats.", &["bergen", "2"]);
        check("4 of them moved. NATO, too.", &["4", "nato"]);
    }
}
