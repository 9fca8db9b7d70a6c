//! Ranking of a list of texts at hand.

use std::borrow::Cow;
use std::sync::Arc;

use super::score::{Collection, Query};
use super::{Analyzer, Bm25Weights, Ranked, SeedAnalyzer, UnicodeAnalyzer};

/// A BM25 ranker of texts at hand: each text is read once, nothing is stored. For many texts that
/// are searched often use [`Bm25Index`](super::Bm25Index), which ranks alike.
///
/// ```
/// use rockbot_search::Bm25Ranker;
///
/// let notes = ["Rust is a language", "the garden gate is made of iron", "iron does rust"];
/// assert_eq!(
///     Bm25Ranker::default().rank(notes, |note| (*note).into(), "iron gate"),
///     ["the garden gate is made of iron", "iron does rust"],
/// );
/// ```
#[derive(Debug, Clone)]
pub struct Bm25Ranker {
    analyzer: Arc<dyn Analyzer>,
    weights: Bm25Weights,
    /// `true` if bigrams are matched in the raw text.
    has_raw_bigrams: bool,
}

impl Default for Bm25Ranker {
    /// Creates a ranker with the [`UnicodeAnalyzer`].
    fn default() -> Self {
        Self::new(Arc::new(UnicodeAnalyzer))
    }
}

impl Bm25Ranker {
    /// Creates a ranker with the terms of `analyzer`.
    pub fn new(analyzer: Arc<dyn Analyzer>) -> Self {
        Self {
            analyzer,
            weights: Bm25Weights::default(),
            has_raw_bigrams: false,
        }
    }

    /// Creates a ranker that ranks exactly as the original of this framework: by the terms of the
    /// [`SeedAnalyzer`], with bigrams matched in the raw text, within other words too.
    ///
    /// Each text is scanned once per bigram of the query, so it does not suit long queries over many
    /// texts.
    pub fn seed() -> Self {
        Self {
            analyzer: Arc::new(SeedAnalyzer),
            weights: Bm25Weights::ORIGINAL,
            has_raw_bigrams: true,
        }
    }

    /// Sets the weights of the scoring function.
    #[must_use]
    pub fn with_weights(mut self, weights: Bm25Weights) -> Self {
        self.weights = weights;
        self
    }

    /// Returns the candidates that contain a term of `query`, best first; with equal scores the
    /// earlier candidate comes first.
    pub fn rank<T>(
        &self,
        candidates: impl IntoIterator<Item = T>,
        text_of: impl Fn(&T) -> Cow<'_, str>,
        query: &str,
    ) -> Vec<T> {
        let ranked = self.rank_with_scores(candidates, text_of, query);
        ranked.into_iter().map(|hit| hit.item).collect()
    }

    /// Ranks as [`Bm25Ranker::rank`] does, and returns the scores too.
    pub fn rank_with_scores<T>(
        &self,
        candidates: impl IntoIterator<Item = T>,
        text_of: impl Fn(&T) -> Cow<'_, str>,
        query: &str,
    ) -> Vec<Ranked<T>> {
        let query = Query::new(&*self.analyzer, query, self.weights.bigram);
        let candidates: Vec<_> = candidates.into_iter().collect();
        let raw_bigrams = if self.has_raw_bigrams {
            query.written_bigrams()
        } else {
            Vec::new()
        };
        let mut scratch = vec![0; query.factors.len()];
        let count = |it: &T, scratch: &mut [u32]| {
            let text = text_of(it);
            let mut counts = self.count(&query, &text, scratch);
            counts.found.extend(raw_counts(&raw_bigrams, &text));
            counts
        };
        let counts: Vec<_> = candidates.iter().map(|it| count(it, &mut scratch)).collect();
        let scores = scores(query, &counts, self.weights);
        let ranked = candidates
            .into_iter()
            .zip(scores)
            .map(|(item, score)| Ranked { item, score });
        let mut ranked: Vec<_> = ranked.filter(|hit| hit.score > 0.0).collect();
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
        ranked
    }

    /// Counts the terms and bigrams of `query` in `text`. `scratch` is all zeros, before and
    /// afterwards.
    fn count(&self, query: &Query, text: &str, scratch: &mut [u32]) -> Counts {
        let mut length = 0;
        let mut found = Vec::new();
        let mut last = None;
        self.analyzer.words(text, &mut |term, written| {
            length += 1;
            let word = query.words.get(term).copied();
            let form = word.and_then(|word| query.form(written, word));
            let pair = last.zip(word).filter(|_| !self.has_raw_bigrams);
            let pair = pair.and_then(|pair| query.bigrams.get(&pair).copied());
            for number in word.into_iter().chain(form).chain(pair) {
                if scratch[number] == 0 {
                    found.push(number);
                }
                scratch[number] += 1;
            }
            last = word;
        });
        // Sums of floats depend on their order: sorted, the same terms in another order score exactly the
        // same.
        found.sort_unstable();
        let take = |number| (number, f64::from(std::mem::take(&mut scratch[number])));
        Counts {
            length: f64::from(length),
            found: found.into_iter().map(take).collect(),
        }
    }
}

/// The term frequencies of one text.
struct Counts {
    /// Number of terms of the text.
    length: f64,
    /// Numbers of the query's terms and bigrams that it contains, with their frequencies.
    found: Vec<(usize, f64)>,
}

/// Counts the raw bigrams in `text`.
fn raw_counts(pairs: &[(usize, String)], text: &str) -> Vec<(usize, f64)> {
    if pairs.is_empty() {
        return Vec::new();
    }
    let text = text.to_ascii_lowercase();
    let counts = pairs.iter().map(|(number, pair)| (*number, text.matches(pair).count()));
    let counts = counts.filter(|(_, count)| *count > 0);
    counts.map(|(number, count)| (number, count as f64)).collect()
}

fn scores(mut query: Query, texts: &[Counts], weights: Bm25Weights) -> Vec<f64> {
    let collection = Collection::new(texts.len(), texts.iter().map(|text| text.length).sum(), weights);
    let (constant, by_length) = collection.saturation();
    let mut frequencies = vec![0; query.factors.len()];
    for (number, _) in texts.iter().flat_map(|text| &text.found) {
        frequencies[*number] += 1;
    }
    query.keep_rarest(&frequencies);
    let mut weights: Vec<_> = frequencies
        .into_iter()
        .map(|frequency| collection.weight(frequency))
        .collect();
    for (form, term) in query.form_numbers() {
        weights[form] -= weights[term];
    }
    let score = |text: &Counts| {
        let saturated = |count: f64| count / (count + constant + by_length * text.length);
        let found = text.found.iter();
        found
            .map(|&(number, count)| query.factors[number] * weights[number] * saturated(count))
            .sum()
    };
    texts.iter().map(score).collect()
}
