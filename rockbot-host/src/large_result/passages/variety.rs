//! Variety: among statements that match alike, the statements that say something new come first.

use rockbot_core::search::{Analyzer, UnicodeAnalyzer};

use super::escapes::unescaped;
use super::index::digest;
use super::query::Query;

/// Share of its score that a statement loses if it differs from a better one by the query's terms
/// and numbers alone, as records of one kind do.
const REPETITION: f64 = 0.2;

/// The terms of a statement for comparing it with others, ascending: without numbers and the
/// terms of the query.
pub(super) struct Wording(Vec<u32>);

impl Wording {
    /// Reads `statement`.
    pub(super) fn of(statement: &str, query: &Query) -> Self {
        let mut terms = Vec::new();
        UnicodeAnalyzer.words(&unescaped(statement.into()), &mut |term, _| {
            let digest = digest(term);
            if !term.bytes().any(|byte| byte.is_ascii_digit()) && !query.terms.contains(&digest) {
                terms.push(digest);
            }
        });
        terms.sort_unstable();
        terms.dedup();
        Self(terms)
    }

    /// Returns the share of terms that both have, from 0 to 1 (Jaccard index).
    fn similarity(&self, other: &Self) -> f64 {
        let shared = self.0.iter().filter(|term| other.0.binary_search(term).is_ok()).count();
        let all = self.0.len() + other.0.len() - shared;
        if all == 0 { 1.0 } else { shared as f64 / all as f64 }
    }
}

/// Orders `ranked`, which holds items with their scores and wordings, best first: each next item
/// is the best of the rest after its score is lowered by its similarity to the items before it
/// (maximal marginal relevance).
pub(super) fn varied<T>(ranked: Vec<(T, f64, Wording)>) -> Vec<T> {
    let mut rest: Vec<_> = ranked
        .into_iter()
        .map(|(item, score, wording)| (item, score, wording, 0.0_f64))
        .collect();
    let mut varied = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let value = |at: usize| rest[at].1 * (1.0 - REPETITION * rest[at].3);
        // The earlier of equal items.
        let best = (1..rest.len()).fold(0, |best, at| if value(at) > value(best) { at } else { best });
        let (item, _, wording, _) = rest.remove(best);
        for (_, _, other, similarity) in &mut rest {
            *similarity = similarity.max(wording.similarity(other));
        }
        varied.push(item);
    }
    varied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_of_another_kind_comes_before_repetitions() {
        let query = Query::read("Anna");
        let statements = [
            "Anna built the bridge of Ulm in 1800",
            "Anna built the bridge of Aix in 1900",
            "Anna built the bridge of Bonn in 1700",
            "Call Anna under 47 11",
        ];
        let ranked = statements.map(|text| (text, 1.0, Wording::of(text, &query))).into();
        let order = varied(ranked);
        assert_eq!(order, [statements[0], statements[3], statements[1], statements[2]]);
    }

    #[test]
    fn a_much_better_repetition_stays_in_front() {
        let query = Query::read("Anna");
        let ranked = [
            ("Anna built a bridge", 1.0),
            ("Anna built a bridge", 0.9),
            ("Call Anna", 0.4),
        ];
        let ranked = ranked.map(|(text, score)| ((text, score), score, Wording::of(text, &query)));
        assert_eq!(varied(ranked.into()).last(), Some(&("Call Anna", 0.4)));
    }
}
