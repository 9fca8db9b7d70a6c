//! The scoring function: Okapi BM25 with k1 = 1.5, b = 0.75, and an inverse document frequency that is always
//! positive.

use std::collections::HashMap;

use super::Analyzer;

const K1: f64 = 1.5;
const B: f64 = 0.75;

/// Weight of a bigram, relative to one term.
pub(super) const BIGRAM_WEIGHT: f64 = 2.0;

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
/// use rockbot_core::search::{Bm25Ranker, normalize};
///
/// let texts = ["one cat", "two dogs", "my cats, your cats"];
/// let mut hits = Bm25Ranker::default().rank_with_scores(texts, |text| (*text).into(), "cat");
/// normalize(&mut hits);
/// assert_eq!((hits[0].item, hits[0].score), ("my cats, your cats", 1.0));
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
}

impl Collection {
    /// Creates the statistics of `texts` texts with `words` terms in all.
    pub(super) fn new(texts: usize, words: f64) -> Self {
        let mean_len = words / texts.max(1) as f64;
        Self {
            texts: texts as f64,
            mean_len: if mean_len > 0.0 { mean_len } else { 1.0 },
        }
    }

    /// Returns the inverse document frequency of a term that `frequency` texts contain, times k1 + 1.
    pub(super) fn weight(self, frequency: usize) -> f64 {
        let frequency = frequency as f64;
        ((self.texts - frequency + 0.5) / (frequency + 0.5) + 1.0).ln() * (K1 + 1.0)
    }

    /// Returns the factors `a` and `b` of the saturation `count / (count + a + b * length)` of a term
    /// frequency.
    pub(super) fn saturation(self) -> (f64, f64) {
        (K1 * (1.0 - B), K1 * B / self.mean_len)
    }
}

/// A query: its distinct terms and bigrams.
#[derive(Debug, Default)]
pub(super) struct Query {
    /// Numbers of the terms.
    pub(super) words: HashMap<Box<str>, usize>,
    /// Numbers of the bigrams, by the numbers of their terms.
    pub(super) bigrams: HashMap<(usize, usize), usize>,
    /// Weights of terms and bigrams, by number.
    pub(super) factors: Vec<f64>,
}

impl Query {
    pub(super) fn new(analyzer: &dyn Analyzer, text: &str) -> Self {
        let mut query = Self::default();
        let mut last = None;
        analyzer.words(text, &mut |word| {
            let known = query.words.get(word).copied();
            let number = known.unwrap_or_else(|| {
                query.words.insert(word.into(), query.factors.len());
                query.factors.push(1.0);
                query.factors.len() - 1
            });
            if let Some(last) = last.replace(number) {
                query.bigrams.entry((last, number)).or_insert_with(|| {
                    query.factors.push(BIGRAM_WEIGHT);
                    query.factors.len() - 1
                });
            }
        });
        query
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
