//! The terms of a query.

use rockbot_core::search::{Analyzer, UnicodeAnalyzer};

use super::index::digest;

/// Maximum number of distinct terms, and of pairs, that a query is searched by.
const MAX_TERMS: usize = 64;

/// Maximum number of bytes of a query that are read.
const MAX_READ: usize = 4_096;

/// The distinct terms of a query, and the pairs of terms that follow each other in it.
#[derive(Debug, Default)]
pub(super) struct Query {
    /// Digests of the terms.
    pub(super) terms: Vec<u32>,
    /// The terms as the query has them: indices of terms, with the digests of the words as written.
    pub(super) forms: Vec<(usize, u32)>,
    /// Indices of two terms.
    pub(super) pairs: Vec<(usize, usize)>,
}

impl Query {
    /// Reads the beginning of `text`: at most 4 KiB, and 64 terms.
    pub(super) fn read(text: &str) -> Self {
        let mut query = Self::default();
        let mut last = None;
        let text = &text[..text.floor_char_boundary(MAX_READ)];
        UnicodeAnalyzer.query_words(text, &mut |term, written| {
            let term = query.number_of(digest(term));
            if let Some(term) = term {
                query.add_form((term, digest(written)));
            }
            if let (Some(last), Some(term)) = (last, term) {
                query.add_pair((last, term));
            }
            last = term;
        });
        query
    }

    /// Returns the index of a term, which is added if there is room.
    fn number_of(&mut self, term: u32) -> Option<usize> {
        let known = self.terms.iter().position(|known| *known == term);
        known.or_else(|| {
            let has_room = self.terms.len() < MAX_TERMS;
            has_room.then(|| {
                self.terms.push(term);
                self.terms.len() - 1
            })
        })
    }

    fn add_form(&mut self, form: (usize, u32)) {
        if self.forms.len() < MAX_TERMS && !self.forms.contains(&form) {
            self.forms.push(form);
        }
    }

    fn add_pair(&mut self, pair: (usize, usize)) {
        if self.pairs.len() < MAX_TERMS && !self.pairs.contains(&pair) {
            self.pairs.push(pair);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_distinct_terms_and_the_pairs_of_neighbours() {
        let query = Query::read("iron gate, garden gate, iron gates");
        assert_eq!(query.terms, ["iron", "gat", "gard"].map(digest));
        let forms = [(0, "iron"), (1, "gate"), (2, "garden"), (1, "gates")];
        assert_eq!(query.forms, forms.map(|(term, written)| (term, digest(written))));
        assert_eq!(query.pairs, [(0, 1), (1, 2), (2, 1), (1, 0)]);
    }

    #[test]
    fn long_queries_are_bounded() {
        let words: String = (0..100_000).map(|number| format!("w{number}x ")).collect();
        let query = Query::read(&words);
        assert_eq!((query.terms.len(), query.pairs.len()), (MAX_TERMS, MAX_TERMS - 1));
    }
}
