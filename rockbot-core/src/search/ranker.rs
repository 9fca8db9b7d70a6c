//! Ranking a few texts at hand.

use std::borrow::Cow;
use std::sync::Arc;

use super::score::{Collection, Query};
use super::{Analyzer, Ranked, SeedAnalyzer, UnicodeAnalyzer};

/// Ranks texts that are at hand: each is read once, nothing is kept. For many texts, searched often, there is
/// [`Bm25Index`](super::Bm25Index), which ranks the same.
///
/// ```
/// use rockbot_core::search::Bm25Ranker;
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
    /// Whether pairs are looked for in the raw text.
    has_raw_bigrams: bool,
}

impl Default for Bm25Ranker {
    /// A ranker with the [`UnicodeAnalyzer`].
    fn default() -> Self {
        Self::new(Arc::new(UnicodeAnalyzer))
    }
}

impl Bm25Ranker {
    /// A ranker whose words are those of `analyzer`.
    pub fn new(analyzer: Arc<dyn Analyzer>) -> Self {
        Self {
            analyzer,
            has_raw_bigrams: false,
        }
    }

    /// Ranks exactly as the original of this framework: by the words of the [`SeedAnalyzer`], and a pair of words counts
    /// wherever the text has both with one blank between them, within other words too.
    ///
    /// Each text is searched once for each pair of the query: not for long queries over many texts.
    pub fn seed() -> Self {
        Self {
            analyzer: Arc::new(SeedAnalyzer),
            has_raw_bigrams: true,
        }
    }

    /// Those of `candidates` whose text has a word of `query`, the best first; of equals the one that came first.
    pub fn rank<T>(
        &self,
        candidates: impl IntoIterator<Item = T>,
        text_of: impl Fn(&T) -> Cow<'_, str>,
        query: &str,
    ) -> Vec<T> {
        let ranked = self.rank_with_scores(candidates, text_of, query);
        ranked.into_iter().map(|hit| hit.item).collect()
    }

    /// As [`Bm25Ranker::rank`], with scores.
    pub fn rank_with_scores<T>(
        &self,
        candidates: impl IntoIterator<Item = T>,
        text_of: impl Fn(&T) -> Cow<'_, str>,
        query: &str,
    ) -> Vec<Ranked<T>> {
        let query = Query::new(&*self.analyzer, query);
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
        let scores = scores(&query, &counts);
        let ranked = candidates
            .into_iter()
            .zip(scores)
            .map(|(item, score)| Ranked { item, score });
        let mut ranked: Vec<_> = ranked.filter(|hit| hit.score > 0.0).collect();
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
        ranked
    }

    /// Counts what `text` has of `query`. `scratch` is all zeros, before and afterwards.
    fn count(&self, query: &Query, text: &str, scratch: &mut [u32]) -> Counts {
        let (mut length, mut found, mut last) = (0, Vec::new(), None);
        self.analyzer.words(text, &mut |word| {
            length += 1;
            let word = query.words.get(word).copied();
            let pair = last.zip(word).filter(|_| !self.has_raw_bigrams);
            let pair = pair.and_then(|pair| query.bigrams.get(&pair).copied());
            for number in word.into_iter().chain(pair) {
                if scratch[number] == 0 {
                    found.push(number);
                }
                scratch[number] += 1;
            }
            last = word;
        });
        // The same words in another order must score exactly the same.
        found.sort_unstable();
        let take = |number| (number, f64::from(std::mem::take(&mut scratch[number])));
        Counts {
            length: f64::from(length),
            found: found.into_iter().map(take).collect(),
        }
    }
}

/// How often one text has what is in a query.
struct Counts {
    /// How many words the text has.
    length: f64,
    /// What it has, by number, and how often.
    found: Vec<(usize, f64)>,
}

/// How often `text` has each of `pairs` as it is written.
fn raw_counts(pairs: &[(usize, String)], text: &str) -> Vec<(usize, f64)> {
    if pairs.is_empty() {
        return Vec::new();
    }
    let text = text.to_ascii_lowercase();
    let counts = pairs.iter().map(|(number, pair)| (*number, text.matches(pair).count()));
    let counts = counts.filter(|(_, count)| *count > 0);
    counts.map(|(number, count)| (number, count as f64)).collect()
}

fn scores(query: &Query, texts: &[Counts]) -> Vec<f64> {
    let collection = Collection::new(texts.len(), texts.iter().map(|text| text.length).sum());
    let (constant, by_length) = collection.saturation();
    let mut frequencies = vec![0; query.factors.len()];
    for (number, _) in texts.iter().flat_map(|text| &text.found) {
        frequencies[*number] += 1;
    }
    let weights: Vec<_> = frequencies
        .into_iter()
        .map(|frequency| collection.weight(frequency))
        .collect();
    let score = |text: &Counts| {
        let saturated = |count: f64| count / (count + constant + by_length * text.length);
        let found = text.found.iter();
        found
            .map(|&(number, count)| query.factors[number] * weights[number] * saturated(count))
            .sum()
    };
    texts.iter().map(score).collect()
}
