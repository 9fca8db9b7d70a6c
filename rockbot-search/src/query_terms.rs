//! The terms of a query, resolved in an index.
//!
//! Queries lose their function words, texts keep them: `What is my cat called?` is searched by
//! `cat` and `called`, while `Who am I?` still finds something, and so do the names `Will` and
//! `US`.

use std::collections::HashMap;

use super::Analyzer;
use super::postings::{Postings, Vocabulary};
use super::word_hash::WordHash;

/// A query term that the index contains, with the terms before it in the query.
pub(super) struct QueryTerm<'a> {
    pub(super) postings: &'a Postings,
    /// Numbers of those terms, each with its position among the query terms.
    before: Vec<(u32, usize)>,
    /// The forms of the term in the query; empty for the term itself.
    written: Vec<Box<str>>,
    /// Bloom filter over `before`, by the lowest bits of the numbers: it rejects most occurrences
    /// without a search.
    before_bits: u64,
}

/// Maximum number of terms that a query is searched by: the rarest in the index, which say the
/// most.
pub(super) const MAX_TERMS: usize = 64;

/// Maximum number of forms of one term that a query is searched by.
pub(super) const MAX_FORMS: usize = 4;

/// Maximum number of bytes of a query that are read: half of them at its beginning and half at
/// its end, where users who paste a long text write their question about it.
const MAX_READ: usize = 32 * 1024;

/// Returns the parts of `query` that are read: all of it, or its beginning and its end.
pub(super) fn read_parts(query: &str) -> impl Iterator<Item = &str> {
    let parts = if query.len() <= MAX_READ {
        [query, ""]
    } else {
        let head = query.floor_char_boundary(MAX_READ / 2);
        let tail = query.ceil_char_boundary(query.len() - MAX_READ / 2);
        [without_torn_end(&query[..head]), without_torn_start(&query[tail..])]
    };
    parts.into_iter().filter(|part| !part.is_empty())
}

/// Removes the word that a cut may have torn, if there is another.
fn without_torn_end(text: &str) -> &str {
    text.rfind(char::is_whitespace).map_or(text, |at| &text[..at])
}

fn without_torn_start(text: &str) -> &str {
    text.find(char::is_whitespace).map_or(text, |at| &text[at..])
}

/// Returns the distinct terms of `query` that the index contains, in order. If there are more
/// than [`MAX_TERMS`], it returns the rarest.
pub(super) fn query_terms<'a>(analyzer: &dyn Analyzer, words: &'a Vocabulary, query: &str) -> Vec<QueryTerm<'a>> {
    let mut terms: Vec<QueryTerm<'a>> = Vec::new();
    let mut places: HashMap<u32, usize, WordHash> = HashMap::default();
    for part in read_parts(query) {
        let mut last = None;
        analyzer.query_words(part, &mut |term, written| {
            let Some(word) = words.find(term) else {
                last = None;
                return;
            };
            let place = *places.entry(word.number).or_insert(terms.len());
            if place == terms.len() {
                terms.push(QueryTerm::new(word));
            }
            terms[place].add_form(term, written);
            terms[place].before.extend(last.replace((word.number, place)));
        });
    }
    keep_rarest(&mut terms);
    terms.iter_mut().for_each(QueryTerm::settle);
    terms
}

/// Removes all but the [`MAX_TERMS`] rarest terms, and their bigrams.
fn keep_rarest(terms: &mut Vec<QueryTerm<'_>>) {
    if terms.len() <= MAX_TERMS {
        return;
    }
    let mut rarity: Vec<_> = terms.iter().map(|term| term.postings.texts().len()).zip(0..).collect();
    let (_, last, _) = rarity.select_nth_unstable(MAX_TERMS - 1);
    let last = *last;
    let is_kept: Vec<_> = terms
        .iter()
        .zip(0..)
        .map(|(term, place)| (term.postings.texts().len(), place) <= last)
        .collect();
    let mut kept = is_kept.iter();
    terms.retain(|_| *kept.next().expect("each term has its mark"));
    for term in terms {
        term.before.retain(|(_, place)| is_kept[*place]);
    }
}

impl<'a> QueryTerm<'a> {
    fn new(postings: &'a Postings) -> Self {
        Self {
            postings,
            before: Vec::new(),
            written: Vec::new(),
            before_bits: 0,
        }
    }

    fn add_form(&mut self, term: &str, written: &str) {
        let written = if written == term { "" } else { written };
        if self.written.len() < MAX_FORMS && self.written.iter().all(|known| **known != *written) {
            self.written.push(written.into());
        }
    }

    /// Returns the texts that have the term as the query has it, with frequencies: one list per form,
    /// if the texts have several forms.
    pub(super) fn written(&self) -> impl Iterator<Item = Vec<(u32, u32)>> {
        self.written.iter().filter_map(|form| self.postings.texts_with(form))
    }

    fn settle(&mut self) {
        self.before.sort_unstable();
        self.before.dedup();
        self.before_bits = self.before.iter().fold(0, |bits, (word, _)| bits | bit(*word));
    }

    /// Returns the texts that contain a bigram of the query that ends with this term, with
    /// frequencies: one list per bigram, in the order of the query.
    pub(super) fn bigrams(&self) -> Vec<Vec<(u32, u32)>> {
        if self.before.is_empty() {
            return Vec::new();
        }
        let places = self.postings.occurrences().iter();
        let found = places.filter_map(|place| Some((self.place_of(place.before)?, place.text)));
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|(pair, _)| *pair);
        let pairs = found.chunk_by(|a, b| a.0 == b.0);
        pairs.map(counted).collect()
    }

    /// Returns the position among the query terms of a term that precedes this term in the query.
    fn place_of(&self, before: u32) -> Option<usize> {
        if self.before_bits & bit(before) == 0 {
            return None;
        }
        let at = self.before.binary_search_by_key(&before, |(word, _)| *word).ok()?;
        Some(self.before[at].1)
    }
}

fn bit(word: u32) -> u64 {
    1 << (word % 64)
}

/// Counts the occurrences of one bigram per text.
fn counted(pair: &[(usize, u32)]) -> Vec<(u32, u32)> {
    let texts = pair.chunk_by(|a, b| a.1 == b.1);
    texts.map(|same| (same[0].1, same.len() as u32)).collect()
}
