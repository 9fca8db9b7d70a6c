//! Search: full text by Okapi BM25, over a list at hand ([`Bm25Ranker`]) or over an inverted index
//! ([`Bm25Index`]), and nearest neighbours of vectors ([`VectorIndex`]).
//!
//! The kit has no tie to the rest of the framework. An [`Analyzer`] splits texts and queries into
//! terms: it folds case and accents, stems, and drops stop words.
//!
//! A text scores for each query term that it contains, more for rare terms (inverse document
//! frequency), and a little more for each bigram of the query, that is, two terms that are
//! adjacent in both ([`Bm25Weights`]).

#![cfg_attr(docsrs, feature(doc_cfg))]

mod analyzer;
mod embedding;
mod english;
mod fold;
mod index;
mod postings;
mod query_terms;
mod ranker;
mod score;
mod stem;
mod vectors;
mod word_hash;

pub use analyzer::{Analyzer, SeedAnalyzer, UnicodeAnalyzer};
pub use embedding::{Embedding, NotAnEmbedding};
pub use english::is_content_word;
pub use index::Bm25Index;
pub use ranker::Bm25Ranker;
pub use score::{Bm25Weights, Ranked, normalize};
pub use vectors::VectorIndex;

#[cfg(test)]
mod tests;
