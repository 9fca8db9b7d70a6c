//! A query over an index, and what texts have of it.

use std::collections::HashMap;

use super::Analyzer;
use super::places::{Word, Words};

/// The different words of a query that stand somewhere, in their order.
pub(super) struct Terms<'a> {
    terms: Vec<Term<'a>>,
}

/// A word of a query, and the words that stand before it there.
pub(super) struct Term<'a> {
    pub(super) word: &'a Word,
    /// Those words by number, each with its place among the terms.
    before: Vec<(u32, u32)>,
    /// One bit for each of them, by the last bits of its number: most words of texts are told apart by it.
    before_bits: u64,
}

impl<'a> Terms<'a> {
    pub(super) fn new(analyzer: &dyn Analyzer, words: &'a Words, query: &str) -> Self {
        let mut terms: Vec<Term<'a>> = Vec::new();
        let (mut places, mut last) = (HashMap::new(), None);
        analyzer.words(query, &mut |word| {
            let Some(word) = words.find(word) else {
                last = None;
                return;
            };
            let place = *places.entry(word.number).or_insert(terms.len());
            if place == terms.len() {
                terms.push(Term::new(word));
            }
            let before = last.replace((word.number, place as u32));
            terms[place].before.extend(before);
        });
        terms.iter_mut().for_each(Term::settle);
        Self { terms }
    }
}

impl<'a> IntoIterator for &'a Terms<'a> {
    type Item = &'a Term<'a>;
    type IntoIter = std::slice::Iter<'a, Term<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.terms.iter()
    }
}

impl<'a> Term<'a> {
    fn new(word: &'a Word) -> Self {
        Self {
            word,
            before: Vec::new(),
            before_bits: 0,
        }
    }

    fn settle(&mut self) {
        self.before.sort_unstable();
        self.before.dedup();
        self.before_bits = self.before.iter().fold(0, |bits, (word, _)| bits | bit(*word));
    }

    /// The place among the terms of `word`, when it stands before this one in the query.
    fn pair(&self, word: u32) -> Option<u32> {
        if self.before_bits & bit(word) == 0 {
            return None;
        }
        let at = self.before.binary_search_by_key(&word, |(before, _)| *before).ok()?;
        Some(self.before[at].1)
    }
}

fn bit(word: u32) -> u64 {
    1 << (word % 64)
}

impl Term<'_> {
    /// The texts that have a pair of the query that ends with this word, and how often: one list for each pair, in the
    /// order of the query.
    pub(super) fn pairs(&self) -> Vec<Vec<(u32, u32)>> {
        if self.before.is_empty() {
            return Vec::new();
        }
        let places = self.word.places().iter();
        let mut found: Vec<_> = places
            .filter_map(|place| Some((self.pair(place.before)?, place.text)))
            .collect();
        found.sort_by_key(|(pair, _)| *pair);
        let pairs = found.chunk_by(|a, b| a.0 == b.0);
        pairs.map(counted).collect()
    }
}

/// The texts of one pair, and how often each stands there.
fn counted(pair: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let texts = pair.chunk_by(|a, b| a.1 == b.1);
    texts.map(|same| (same[0].1, same.len() as u32)).collect()
}
