//! The incremental inverted index.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use super::postings::{NO_TERM, Vocabulary};
use super::query_terms::query_terms;
use super::score::{Collection, WRITTEN};
use super::{Analyzer, Bm25Weights, Ranked, UnicodeAnalyzer};

/// An inverted index of texts, updated incrementally: the next search sees every change.
///
/// Ranks as [`Bm25Ranker`](super::Bm25Ranker) does over the same texts; with equal scores the
/// smaller key comes first. Adding takes time in the length of the text, searching in the number
/// of postings of the query's terms. Removed texts are compacted away once they are more than a
/// third of the index.
///
/// ```
/// use rockbot_search::Bm25Index;
///
/// let mut index = Bm25Index::default();
/// index.insert("gate", "the garden gate is made of iron");
/// index.insert("rust", "iron does rust");
/// assert_eq!(index.search("iron gate", 10)[0].item, "gate");
/// index.remove("gate");
/// assert_eq!(index.search("iron gate", 10)[0].item, "rust");
/// ```
#[derive(Debug, Clone)]
pub struct Bm25Index<K> {
    analyzer: Arc<dyn Analyzer>,
    weights: Bm25Weights,
    vocabulary: Vocabulary,
    /// Keys by document number; `None` for a removed text.
    keys: Vec<Option<K>>,
    /// Lengths in terms, by document number.
    lengths: Vec<u32>,
    numbers: HashMap<K, u32>,
    /// Number of terms of all texts that are not removed.
    total_length: u64,
}

impl<K> Default for Bm25Index<K> {
    /// Creates an empty index with the [`UnicodeAnalyzer`].
    fn default() -> Self {
        Self::new(Arc::new(UnicodeAnalyzer))
    }
}

impl<K> Bm25Index<K> {
    /// Creates an empty index with the terms of `analyzer`.
    pub fn new(analyzer: Arc<dyn Analyzer>) -> Self {
        Self {
            analyzer,
            weights: Bm25Weights::default(),
            vocabulary: Vocabulary::default(),
            keys: Vec::new(),
            lengths: Vec::new(),
            numbers: HashMap::new(),
            total_length: 0,
        }
    }

    /// Sets the weights of the scoring function.
    #[must_use]
    pub fn with_weights(mut self, weights: Bm25Weights) -> Self {
        self.weights = weights;
        self
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns `true` if the index is empty.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
}

impl<K: Clone + Ord + Hash> Bm25Index<K> {
    /// Inserts `text` under `key`, in place of the text there.
    pub fn insert(&mut self, key: K, text: &str) {
        self.remove(&key);
        let number = u32::try_from(self.keys.len()).expect("an index holds fewer than 2^32 texts");
        let mut length = 0_u32;
        let mut before = NO_TERM;
        self.analyzer.words(text, &mut |term, written| {
            length = length.saturating_add(1);
            before = self.vocabulary.add(term, written, number, before);
        });
        self.keys.push(Some(key.clone()));
        self.lengths.push(length);
        self.numbers.insert(key, number);
        self.total_length += u64::from(length);
    }

    /// Removes the text under `key`. Returns `true` if it existed.
    pub fn remove<Q>(&mut self, key: &Q) -> bool
    where
        K: std::borrow::Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let Some(number) = self.numbers.remove(key) else {
            return false;
        };
        self.keys[number as usize] = None;
        self.total_length -= u64::from(self.lengths[number as usize]);
        if self.removed() > MAX_REMOVED && self.removed() > self.len() / 2 {
            self.compact();
        }
        true
    }

    /// Returns the `limit` best texts that contain a term of `query`, best first.
    ///
    /// The work has a bound whatever the length of the query. If the query is longer than 32 KiB,
    /// its beginning and its end are read. If more than 64 of its terms occur in the index, the
    /// rarest are searched for.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Ranked<K>> {
        let collection = Collection::new(self.len(), self.total_length as f64, self.weights);
        let mut scores = vec![0.0_f32; self.keys.len().next_multiple_of(BLOCK)];
        for term in query_terms(&*self.analyzer, &self.vocabulary, query) {
            let texts = term.postings.texts();
            let weight = self.weight(collection, texts);
            self.add_scores(collection, weight, texts, &mut scores);
            for texts in term.written() {
                let more = WRITTEN * (self.weight(collection, &texts) - weight);
                self.add_scores(collection, more, &texts, &mut scores);
            }
            for texts in term.bigrams() {
                let weight = self.weights.bigram * self.weight(collection, &texts);
                self.add_scores(collection, weight, &texts, &mut scores);
            }
        }
        self.best(&scores, limit)
    }

    /// Returns the weight of a term, a form or a bigram that occurs in the texts with these
    /// document numbers.
    fn weight(&self, collection: Collection, texts: &[(u32, u32)]) -> f64 {
        let is_there = |text: u32| self.keys[text as usize].is_some();
        let frequency = match self.removed() {
            0 => texts.len(),
            _ => texts.iter().filter(|(text, _)| is_there(*text)).count(),
        };
        collection.weight(frequency)
    }

    /// Adds the scores of a term, a form or a bigram; `texts` holds its document numbers and term
    /// frequencies.
    fn add_scores(&self, collection: Collection, weight: f64, texts: &[(u32, u32)], scores: &mut [f32]) {
        let weight = weight as f32;
        let (constant, by_length) = collection.saturation();
        let constant = constant as f32;
        let by_length = by_length as f32;
        for &(text, count) in texts {
            let text = text as usize;
            let count = count as f32;
            scores[text] += weight * count / (count + constant + by_length * self.lengths[text] as f32);
        }
    }

    /// Selects the `limit` best texts with a bounded heap. `scores` holds whole blocks, in which
    /// there is no text behind the last.
    fn best(&self, scores: &[f32], limit: usize) -> Vec<Ranked<K>> {
        let mut best = BinaryHeap::with_capacity(limit.min(scores.len()));
        let mut least = f32::MIN_POSITIVE;
        let (blocks, _) = scores.as_chunks::<BLOCK>();
        for (keys, block) in self.keys.chunks(BLOCK).zip(blocks) {
            // Without branches, so that the compiler compares many scores at once: most are too low.
            if !block.iter().fold(false, |found, score| found | (*score >= least)) {
                continue;
            }
            for (key, &score) in keys.iter().zip(block) {
                if score < least {
                    continue;
                }
                let Some(key) = key else { continue };
                let hit = Reverse(Hit { score, key });
                if best.len() < limit {
                    best.push(hit);
                } else if let Some(mut worst) = best.peek_mut().filter(|worst| hit < **worst) {
                    *worst = hit;
                }
                if best.len() == limit {
                    least = best.peek().map_or(least, |worst| worst.0.score);
                }
            }
        }
        let best = best.into_sorted_vec().into_iter();
        best.map(|Reverse(hit)| Ranked {
            item: hit.key.clone(),
            score: f64::from(hit.score),
        })
        .collect()
    }

    fn removed(&self) -> usize {
        self.keys.len() - self.numbers.len()
    }

    /// Renumbers the texts without gaps, and drops the postings of removed texts.
    fn compact(&mut self) {
        let texts = renumbered(self.keys.iter().map(Option::is_some));
        self.vocabulary.renumber_texts(|text| texts[text as usize]);
        let mut is_left = self.keys.iter().map(Option::is_some);
        self.lengths.retain(|_| is_left.next().unwrap_or_default());
        self.keys.retain(Option::is_some);
        for number in self.numbers.values_mut() {
            *number = texts[*number as usize].expect("a text that has a number is there");
        }
    }
}

/// Number of texts that are passed over together.
const BLOCK: usize = 16;

/// Number of removed texts below which the index is never compacted.
const MAX_REMOVED: usize = 64;

/// Returns new document numbers without gaps for the texts that are left.
fn renumbered(is_left: impl Iterator<Item = bool>) -> Vec<Option<u32>> {
    let mut next = 0;
    let number = |is_left: bool| {
        let number = is_left.then_some(next);
        next += u32::from(is_left);
        number
    };
    is_left.map(number).collect()
}

/// A candidate of the result.
struct Hit<'a, K> {
    score: f32,
    key: &'a K,
}

impl<K: Ord> Ord for Hit<'_, K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.key.cmp(self.key))
    }
}

impl<K: Ord> PartialOrd for Hit<'_, K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord> PartialEq for Hit<'_, K> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<K: Ord> Eq for Hit<'_, K> {}
