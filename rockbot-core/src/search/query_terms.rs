//! The terms of a query, resolved in an index.

use std::collections::HashMap;

use super::Analyzer;
use super::postings::{Postings, Vocabulary};

/// A query term that the index contains, with the terms before it in the query.
pub(super) struct QueryTerm<'a> {
    pub(super) postings: &'a Postings,
    /// Numbers of those terms, each with its position among the query terms.
    before: Vec<(u32, usize)>,
    /// Bloom filter over `before`, by the lowest bits of the numbers: it rejects most occurrences without a
    /// search.
    before_bits: u64,
}

/// Returns the distinct terms of `query` that the index contains, in order.
pub(super) fn query_terms<'a>(analyzer: &dyn Analyzer, words: &'a Vocabulary, query: &str) -> Vec<QueryTerm<'a>> {
    let mut terms: Vec<QueryTerm<'a>> = Vec::new();
    let (mut places, mut last) = (HashMap::new(), None);
    analyzer.words(query, &mut |word| {
        let Some(word) = words.find(word) else {
            last = None;
            return;
        };
        let place = *places.entry(word.number).or_insert(terms.len());
        if place == terms.len() {
            terms.push(QueryTerm::new(word));
        }
        terms[place].before.extend(last.replace((word.number, place)));
    });
    terms.iter_mut().for_each(QueryTerm::settle);
    terms
}

impl<'a> QueryTerm<'a> {
    fn new(postings: &'a Postings) -> Self {
        Self {
            postings,
            before: Vec::new(),
            before_bits: 0,
        }
    }

    fn settle(&mut self) {
        self.before.sort_unstable();
        self.before.dedup();
        self.before_bits = self.before.iter().fold(0, |bits, (word, _)| bits | bit(*word));
    }

    /// Returns the texts that contain a bigram of the query that ends with this term, with frequencies: one
    /// list per bigram, in the order of the query.
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

    /// Returns the position among the query terms of a term that precedes this one in the query.
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
