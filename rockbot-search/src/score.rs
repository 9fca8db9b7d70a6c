//! The scoring function: Okapi BM25 with an inverse document frequency that is always positive.
//!
//! A word pair scores where both words are adjacent in the text, as the analyzer reads it. The
//! original counts a pair as a substring of the raw text: it misses "state of art" and finds "art
//! work" in "smart workers". `Bm25Ranker::seed` does so, too.

use std::collections::HashMap;

use super::Analyzer;
use super::query_terms::{MAX_FORMS, MAX_TERMS, read_parts};

/// The weights of the scoring function.
///
/// The default suits short texts such as memories and turns of a conversation: k1 = 0.9 and b =
/// 0.4, as TREC's baselines have them, and a quarter of a term's weight for a bigram.
///
/// ```
/// use rockbot_search::{Bm25Index, Bm25Weights};
///
/// let index: Bm25Index<u32> = Bm25Index::default().with_weights(Bm25Weights::default().with_bigram(0.0));
/// assert!(index.is_empty());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Bm25Weights {
    /// k1, from 0: how much a repetition of a term in a text adds. Default 0.9.
    pub k1: f64,
    /// b, from 0 to 1: how much the length of a text counts against it. Default 0.4.
    pub b: f64,
    /// Weight of a bigram, relative to one term. Default 0.25.
    pub bigram: f64,
}

impl Default for Bm25Weights {
    fn default() -> Self {
        Self {
            k1: 0.9,
            b: 0.4,
            bigram: 0.25,
        }
    }
}

impl Bm25Weights {
    /// The weights of the original of this framework: k1 = 1.5, b = 0.75, and 2 for a bigram.
    pub const ORIGINAL: Self = Self {
        k1: 1.5,
        b: 0.75,
        bigram: 2.0,
    };

    /// Sets k1: how much a repetition of a term in a text adds. Default 0.9.
    #[must_use]
    pub fn with_k1(mut self, k1: f64) -> Self {
        self.k1 = k1;
        self
    }

    /// Sets b: how much the length of a text counts against it. Default 0.4.
    #[must_use]
    pub fn with_b(mut self, b: f64) -> Self {
        self.b = b;
        self
    }

    /// Sets the weight of a bigram, relative to one term. Default 0.25.
    #[must_use]
    pub fn with_bigram(mut self, bigram: f64) -> Self {
        self.bigram = bigram;
        self
    }
}

/// A search result with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Ranked<T> {
    /// Item that matches.
    pub item: T,
    /// Score: above 0, finite, and comparable within one search only.
    pub score: f64,
}

impl<T> Ranked<T> {
    /// Creates a result: an item that matches, with its score.
    pub fn new(item: T, score: f64) -> Self {
        Self { item, score }
    }
}

/// Normalizes scores: divides them by the best one, so that they lie between 0 and 1.
///
/// ```
/// use rockbot_search::{Bm25Ranker, normalize};
///
/// let texts = ["one cat", "two dogs", "my cat, your cat"];
/// let mut hits = Bm25Ranker::default().rank_with_scores(texts, |text| (*text).into(), "cat");
/// normalize(&mut hits);
/// assert_eq!((hits[0].item, hits[0].score), ("my cat, your cat", 1.0));
/// assert!(hits[1].score < 1.0);
/// ```
pub fn normalize<T>(hits: &mut [Ranked<T>]) {
    let best = hits.iter().map(|hit| hit.score).fold(0.0, f64::max);
    if best > 0.0 {
        hits.iter_mut().for_each(|hit| hit.score /= best);
    }
}

/// The statistics of a collection of texts that scores depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Collection {
    texts: f64,
    mean_len: f64,
    weights: Bm25Weights,
}

impl Collection {
    /// Creates the statistics of `texts` texts with `words` terms in all.
    pub(super) fn new(texts: usize, words: f64, weights: Bm25Weights) -> Self {
        let mean_len = words / texts.max(1) as f64;
        Self {
            texts: texts as f64,
            mean_len: if mean_len > 0.0 { mean_len } else { 1.0 },
            weights,
        }
    }

    /// Returns the inverse document frequency of a term that `frequency` texts contain, times k1 + 1.
    pub(super) fn weight(self, frequency: usize) -> f64 {
        let frequency = frequency as f64;
        ((self.texts - frequency + 0.5) / (frequency + 0.5) + 1.0).ln() * (self.weights.k1 + 1.0)
    }

    /// Returns the factors `a` and `b` of the saturation `count / (count + a + b * length)` of a term
    /// frequency.
    pub(super) fn saturation(self) -> (f64, f64) {
        let Bm25Weights { k1, b, .. } = self.weights;
        (k1 * (1.0 - b), k1 * b / self.mean_len)
    }
}

/// The share of the weight difference between a word as written and its term that a text with the
/// word as written gets in addition, from 0 to 1. With 1 such a text scores by the word alone.
pub(super) const WRITTEN: f64 = 0.5;

/// A query: its distinct terms and bigrams.
#[derive(Debug, Default)]
pub(super) struct Query {
    /// Numbers of the terms.
    pub(super) words: HashMap<Box<str>, usize>,
    /// Numbers of the bigrams, by the numbers of their terms.
    pub(super) bigrams: HashMap<(usize, usize), usize>,
    /// The terms as the query has them written, with their numbers, by the numbers of the terms.
    pub(super) forms: HashMap<usize, Vec<(Box<str>, usize)>>,
    /// Weights of terms, bigrams and forms, by number.
    pub(super) factors: Vec<f64>,
}

impl Query {
    /// Reads the query `text`, with the weight of `bigram` for its bigrams.
    pub(super) fn new(analyzer: &dyn Analyzer, text: &str, bigram: f64) -> Self {
        let mut query = Self::default();
        for part in read_parts(text) {
            let mut last = None;
            analyzer.query_words(part, &mut |term, written| query.add(term, written, &mut last, bigram));
        }
        query
    }

    /// Adds a term, which follows the term number `last`.
    fn add(&mut self, word: &str, written: &str, last: &mut Option<usize>, bigram: f64) {
        let known = self.words.get(word).copied();
        let number = known.unwrap_or_else(|| {
            self.words.insert(word.into(), self.factors.len());
            self.factors.push(1.0);
            self.factors.len() - 1
        });
        let forms = self.forms.entry(number).or_default();
        if forms.len() < MAX_FORMS && forms.iter().all(|(known, _)| **known != *written) {
            forms.push((written.into(), self.factors.len()));
            self.factors.push(WRITTEN);
        }
        if let Some(last) = last.replace(number) {
            self.bigrams.entry((last, number)).or_insert_with(|| {
                self.factors.push(bigram);
                self.factors.len() - 1
            });
        }
    }

    /// Returns the number of the form `written` of a term, if the query has it.
    pub(super) fn form(&self, written: &str, term: usize) -> Option<usize> {
        let known = self.forms.get(&term)?.iter().find(|(form, _)| **form == *written);
        known.map(|(_, number)| *number)
    }

    /// Returns the numbers of each form and of its term.
    pub(super) fn form_numbers(&self) -> impl Iterator<Item = (usize, usize)> {
        let forms = self.forms.iter();
        forms.flat_map(|(term, forms)| forms.iter().map(|(_, form)| (*form, *term)))
    }

    /// Removes the weight of all terms but the rarest, if there are more than [`MAX_TERMS`], and of
    /// their bigrams. `frequencies` holds the number of texts that contain a term, by number.
    pub(super) fn keep_rarest(&mut self, frequencies: &[usize]) {
        let mut found: Vec<_> = self
            .words
            .values()
            .map(|&number| (frequencies[number], number))
            .collect();
        found.retain(|(frequency, _)| *frequency > 0);
        if found.len() <= MAX_TERMS {
            return;
        }
        let (_, _, common) = found.select_nth_unstable(MAX_TERMS - 1);
        for (_, number) in common {
            self.factors[*number] = 0.0;
        }
        for ((one, other), bigram) in &self.bigrams {
            self.factors[*bigram] *= self.factors[*one] * self.factors[*other];
        }
        for (term, forms) in &self.forms {
            for (_, form) in forms {
                self.factors[*form] *= self.factors[*term];
            }
        }
    }

    /// Returns each bigram as written text, with its number.
    pub(super) fn written_bigrams(&self) -> Vec<(usize, String)> {
        let words: HashMap<_, _> = self.words.iter().map(|(word, number)| (number, word)).collect();
        let bigrams = self.bigrams.iter();
        let mut bigrams: Vec<_> = bigrams
            .map(|((a, b), bigram)| (*bigram, format!("{} {}", words[a], words[b])))
            .collect();
        bigrams.sort_unstable();
        bigrams
    }
}
