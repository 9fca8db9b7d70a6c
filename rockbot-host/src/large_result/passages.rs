//! Full-text search in the chunks of a large result: the passages that a model is shown for its query.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use rockbot_core::search::Bm25Ranker;
use rockbot_core::store::WorkingEntry;

use super::chunker::ContentChunker;

/// Maximum size of a passage without what it shares with its neighbours, in characters.
const PASSAGE_LEN: usize = 1_000;

/// Number of bytes that a passage shares with the one before it, and with the one after it: a sentence at the border
/// of two passages is whole in one of them.
const SHARED: usize = 200;

/// Maximum length of a word that is kept whole at the border of a passage, in bytes.
const MAX_WORD: usize = 100;

/// Returns the `limit` passages of `chunks` that rank best for `query`, each with its key and offset, for a model.
pub(super) fn best(chunks: &[Arc<WorkingEntry>], query: &str, limit: usize) -> String {
    let passages = chunks
        .iter()
        .flat_map(|entry| passages_of(&entry.value).map(move |range| (entry, range)));
    let mut found = Bm25Ranker::default().rank(passages, |(entry, range)| entry.value[range.clone()].into(), query);
    found.truncate(limit);
    if found.is_empty() {
        return "No passage has any of these words. Try other words, or read the outline.".to_owned();
    }
    let mut text = String::new();
    for (entry, range) in found {
        push_passage(&mut text, entry, range);
    }
    text
}

/// Returns the byte ranges of the passages of `text`: they overlap, and begin and end between words.
fn passages_of(text: &str) -> impl Iterator<Item = Range<usize>> {
    let cores = ContentChunker::new(PASSAGE_LEN).split(text);
    let mut reached = None;
    cores.into_iter().filter_map(move |core| {
        let Range { start, end } = core.range();
        let start = text.floor_char_boundary(start.saturating_sub(SHARED));
        let end = text.ceil_char_boundary((end + SHARED).min(text.len()));
        let passage = word_start(text, start)..word_end(text, end);
        // A short end of the text is part of the passage before it.
        let is_new = reached < Some(passage.end);
        reached = reached.max(Some(passage.end));
        is_new.then_some(passage)
    })
}

/// Returns the start of the word that `at` is inside of, or `at` if it is between words.
fn word_start(text: &str, at: usize) -> usize {
    let least = text.floor_char_boundary(at.saturating_sub(MAX_WORD));
    match text[at..].starts_with(is_in_word) {
        true => text[least..at]
            .rfind(|c| !is_in_word(c))
            .map_or(at, |before| text.ceil_char_boundary(least + before + 1)),
        false => at,
    }
}

/// Returns the end of the word that `at` is inside of, or `at` if it is between words.
fn word_end(text: &str, at: usize) -> usize {
    let most = text.ceil_char_boundary((at + MAX_WORD).min(text.len()));
    match text[..at].ends_with(is_in_word) {
        true => text[at..most].find(|c| !is_in_word(c)).map_or(at, |after| at + after),
        false => at,
    }
}

fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn push_passage(text: &mut String, entry: &WorkingEntry, range: Range<usize>) {
    let offset = entry.value[..range.start].chars().count();
    writeln!(text, "[from `{}`, offset {offset}]", entry.key).expect("a String takes everything");
    text.push_str(entry.value[range].trim_end());
    text.push_str("\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_overlap_and_cut_no_word() {
        let lines: String = (0..2_000).map(|n| format!("line{n} straße_{n} says ok\n")).collect();
        let one_line: String = (0..2_000)
            .map(|n| format!("{{\"straßeName{n}\":\"value{n}\"}},"))
            .collect();
        let sections: String = (0..200)
            .map(|n| format!("# Part {n}\n\nword{n} and more\n\n"))
            .collect();
        for text in [lines, one_line, sections, "ä".repeat(5_000), String::new()] {
            let ranges: Vec<_> = passages_of(&text).collect();
            assert_eq!((ranges[0].start, ranges[ranges.len() - 1].end), (0, text.len()));
            for pair in ranges.windows(2) {
                let shared = pair[0].end - pair[1].start;
                assert!(shared >= 2 * SHARED.min(pair[0].len() / 2), "{pair:?}");
                assert!(text[pair[1].clone()].chars().count() <= 1_500 + 2 * MAX_WORD);
            }
            for at in ranges.iter().flat_map(|range| [range.start, range.end]) {
                let is_torn = text[..at].ends_with(is_in_word) && text[at..].starts_with(is_in_word);
                assert!(!is_torn || text.starts_with("ää"), "{at}");
            }
        }
    }
}
