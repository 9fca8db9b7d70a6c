//! Finding texts by words: Okapi BM25, over a list at hand or over an index that is kept up to date. Finding vectors that
//! lie close to another one: [`VectorIndex`].
//!
//! A text scores for each word of the query that it has, more when few texts have it, and twice as much again for each
//! two words that stand side by side in both. An [`Analyzer`] says what the words are.

mod analyzer;
mod fold;
mod index;
mod postings;
mod query_terms;
mod ranker;
mod score;
mod stem;
mod vectors;

pub use analyzer::{Analyzer, SeedAnalyzer, UnicodeAnalyzer};
pub use index::Bm25Index;
pub use ranker::Bm25Ranker;
pub use score::{Ranked, normalize};
pub use vectors::VectorIndex;

#[cfg(test)]
mod tests;
