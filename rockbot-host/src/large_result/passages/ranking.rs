//! The order of statements: by the terms of the query in them, around them and in their heading.

use super::matches::{APART, Found, Match, Matches};
use super::query::Query;

/// k1 of BM25, from 0: how much the length of a statement counts at all, since terms count once.
const K1: f64 = 0.9;

/// b of BM25, from 0 to 1: how much the length of a statement counts against it.
const BY_LENGTH: f64 = 0.3;

/// Weight of two words that follow each other in the query, and do so in the text, relative to
/// one word: most are parts of a name.
const PAIR: f64 = 1.0;

/// The share of the weight difference between a word as written and its term that a statement
/// with the word as written gets in addition, from 0 to 1.
const WRITTEN: f64 = 1.0;

/// Weight of a term that stands in a neighbouring statement, relative to one in the statement
/// itself.
const NEIGHBOUR: f64 = 0.3;

/// Weight of a term that stands in the heading, by the level of the heading. In code, a line that
/// looks like a heading of level 1 is a comment, which belongs to the next line alone.
const HEADING: [f64; 4] = [0.0, 0.8, 0.95, 0.95];

/// The weights of the terms, forms and pairs of a query: rare terms say more (inverse document
/// frequency).
struct Weights {
    terms: Vec<f64>,
    /// The weights of forms beyond the weights of their terms.
    forms: Vec<f64>,
    pairs: Vec<f64>,
}

impl Weights {
    fn of(matches: &Matches, query: &Query) -> Self {
        let weight = |is_in: &dyn Fn(&Match) -> bool| {
            let (all, with) = (
                matches.statements as f64,
                matches.all.iter().filter(|it| is_in(it)).count() as f64,
            );
            (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
        };
        let bits = |length: usize| (0..length).map(|bit| 1_u64 << bit);
        let terms: Vec<_> = bits(query.terms.len())
            .map(|bit| weight(&|it| it.own.terms & bit != 0))
            .collect();
        let forms = query.forms.iter().zip(bits(query.forms.len()));
        let forms = forms.map(|((term, _), bit)| WRITTEN * (weight(&|it| it.own.forms & bit != 0) - terms[*term]));
        Self {
            forms: forms.collect(),
            terms,
            pairs: bits(query.pairs.len())
                .map(|bit| weight(&|it| it.own.pairs & bit != 0))
                .collect(),
        }
    }

    /// Returns the weight of terms, forms and pairs.
    fn sum(&self, found: Found) -> f64 {
        sum(&self.terms, found.terms) + sum(&self.forms, found.forms) + PAIR * sum(&self.pairs, found.pairs)
    }
}

fn sum(weights: &[f64], set: u64) -> f64 {
    let weights = weights.iter().enumerate().filter(|(bit, _)| set & 1 << bit != 0);
    weights.map(|(_, weight)| weight).sum()
}

/// Returns the best `limit` matches for `query` with their scores, best first; with equal scores
/// the earlier match comes first.
pub(super) fn ranked<'m>(matches: &'m Matches, query: &Query, limit: usize) -> Vec<(&'m Match, f64)> {
    let weights = Weights::of(matches, query);
    let scored = (0..matches.all.len()).map(|at| (&matches.all[at], score(matches, at, &weights)));
    let mut scored: Vec<_> = scored.collect();
    scored.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    scored.truncate(limit);
    scored
}

/// Returns the score of match number `at`. A term counts once: in the statement, else in its
/// heading, else around it.
fn score(matches: &Matches, at: usize, weights: &Weights) -> f64 {
    let Match {
        own, length, heading, ..
    } = matches.all[at];
    let mean = matches.length as f64 / matches.statements.max(1) as f64;
    let length = 1.0 - BY_LENGTH + BY_LENGTH * f64::from(length) / mean.max(1.0);
    let (above, by_level) = heading.map_or((Found::default(), 0.0), |heading| {
        let heading = &matches.headings[heading];
        (heading.own, HEADING[usize::from(heading.level)])
    });
    let around = neighbours(matches, at).fold(Found::default(), |set, it| Found {
        terms: set.terms | it.own.terms,
        forms: set.forms | it.own.forms,
        pairs: 0,
    });
    let around = around.without(own).without(above);
    weights.sum(own) * (K1 + 1.0) / (1.0 + K1 * length)
        + by_level * weights.sum(above.without(own))
        + NEIGHBOUR * weights.sum(around)
}

/// Returns the matches beside number `at`.
fn neighbours(matches: &Matches, at: usize) -> impl Iterator<Item = &Match> {
    let own = matches.all[at].number;
    let before = matches.all[..at]
        .iter()
        .rev()
        .take_while(move |it| own - it.number < APART);
    let behind = matches.all[at + 1..]
        .iter()
        .take_while(move |it| it.number - own < APART);
    before.chain(behind)
}
