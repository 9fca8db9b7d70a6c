//! The statements that have terms of a query.

use std::ops::Range;
use std::sync::Arc;

use rockbot_core::store::WorkingEntry;

use super::cache::IndexCache;
use super::index::ChunkIndex;
use super::query::Query;
use super::{next_of, text_beyond};

/// A stretch of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Index of the chunk.
    pub(super) chunk: usize,
    /// Byte range in the chunk; the end may be in the next chunk.
    pub(super) range: Range<usize>,
}

/// A statement that has terms of a query, or whose heading has.
#[derive(Debug)]
pub(super) struct Match {
    /// Number of the statement among all of the chunks.
    pub(super) number: usize,
    pub(super) place: Place,
    /// The query's terms and pairs that stand in it.
    pub(super) own: Found,
    /// Number of its terms.
    pub(super) length: u32,
    /// Index of the heading that it stands under: its own for a heading.
    pub(super) heading: Option<usize>,
}

/// A set of the terms, forms and pairs of a query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) terms: u64,
    /// The terms that stand there as the query has them written.
    pub(super) forms: u64,
    pub(super) pairs: u64,
}

impl Found {
    /// Returns `true` if it holds no term.
    fn is_empty(self) -> bool {
        self.terms == 0
    }

    /// Returns what `other` does not hold.
    pub(super) fn without(self, other: Self) -> Self {
        Self {
            terms: self.terms & !other.terms,
            forms: self.forms & !other.forms,
            pairs: self.pairs & !other.pairs,
        }
    }
}

/// A heading of matches.
#[derive(Debug, Clone)]
pub(super) struct Heading {
    number: usize,
    pub(super) place: Place,
    /// The query's terms and pairs that stand in it.
    pub(super) own: Found,
    /// Its level, from 1.
    pub(super) level: u8,
}

/// The statements of some chunks that match a query.
#[derive(Debug, Default)]
pub(super) struct Matches {
    /// In order.
    pub(super) all: Vec<Match>,
    /// The headings of the matches, in order.
    pub(super) headings: Vec<Heading>,
    /// Number of statements of the chunks, whether they match or not.
    pub(super) statements: usize,
    /// Number of terms of all statements.
    pub(super) length: u64,
}

/// Difference of the numbers of statements beyond which they are no neighbours.
pub(super) const APART: usize = 3;

/// Number of statements below a heading that match by the heading alone. A statement farther away
/// is mostly about something else, or has terms of the query itself.
const SECTION: usize = 40;

/// Maximum number of matches. Only texts of many megabytes have more; then the matches with the
/// fewest terms are left out.
const MAX_MATCHES: usize = 250_000;

impl Matches {
    /// Searches the statements of `chunks`. The chunks of one result follow each other.
    pub(super) fn of(chunks: &[Arc<WorkingEntry>], query: &Query, indexes: &IndexCache) -> Self {
        let mut matches = Self::default();
        let mut first = 0;
        let mut heading = None;
        for (chunk, entry) in chunks.iter().enumerate() {
            if chunk > 0 && next_of(chunks, chunk - 1).is_none() {
                (first, heading) = (first + APART, None);
            }
            let index = indexes.index_of(&text_beyond(chunks, chunk), entry.value.len());
            matches.add(&index, query, chunk, first, &mut heading);
            matches.keep_best(MAX_MATCHES);
            first += index.statements.len();
        }
        matches
    }

    /// Adds the matches of a chunk whose first statement has the number `first` and stands under
    /// `heading`.
    fn add(&mut self, index: &ChunkIndex, query: &Query, chunk: usize, first: usize, heading: &mut Option<Heading>) {
        let hits = hits(index, query);
        let mut hits = hits.as_slice();
        self.statements += index.statements.len();
        for (at, statement) in index.statements.iter().enumerate() {
            let (here, others) = hits.split_at(hits.partition_point(|hit| hit.statement as usize == at));
            hits = others;
            let number = first + at;
            let range = statement.range();
            let own = found(here, query);
            let place = Place { chunk, range };
            self.length += u64::from(statement.terms);
            if statement.level > 0 {
                *heading = Some(Heading {
                    number,
                    place: place.clone(),
                    own,
                    level: statement.level,
                });
            }
            let is_below = heading
                .as_ref()
                .is_some_and(|it| !it.own.is_empty() && number - it.number <= SECTION);
            if !own.is_empty() || is_below {
                let heading = heading.as_ref().map(|heading| self.heading(heading));
                self.all.push(Match {
                    number,
                    place,
                    own,
                    length: statement.terms,
                    heading,
                });
            }
        }
    }

    /// Removes the matches with the fewest terms until there are at most `limit`. If matches have
    /// equally many terms, it removes the last of them.
    fn keep_best(&mut self, limit: usize) {
        let mut least = 0;
        while self.all.len() > limit {
            let has_more = |it: &Match| it.own.terms.count_ones() > least;
            if self.all.iter().any(has_more) {
                self.all.retain(has_more)
            } else {
                self.all.truncate(limit)
            }
            least += 1;
        }
    }

    /// Returns the index of a heading, which is added if it is not the last heading.
    fn heading(&mut self, heading: &Heading) -> usize {
        if self.headings.last().is_none_or(|last| last.number != heading.number) {
            self.headings.push(heading.clone());
        }
        self.headings.len() - 1
    }
}

/// A place of a term of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hit {
    /// Number of the statement in its chunk.
    statement: u32,
    place: u32,
    term: usize,
    /// Digest of the word as written.
    written: u32,
}

/// Returns where the terms of `query` stand, in order.
fn hits(index: &ChunkIndex, query: &Query) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (term, digest) in query.terms.iter().enumerate() {
        let found = index.find(*digest);
        hits.extend(found.map(|(written, statement, place)| Hit {
            statement,
            place,
            term,
            written,
        }));
    }
    hits.sort_unstable();
    hits
}

/// Returns the terms and pairs that stand in a statement.
fn found(hits: &[Hit], query: &Query) -> Found {
    let terms = hits.iter().fold(0, |set, hit| set | 1 << hit.term);
    let forms = hits
        .iter()
        .filter_map(|hit| query.forms.iter().position(|own| *own == (hit.term, hit.written)));
    let beside = hits.windows(2).filter(|pair| pair[0].place + 1 == pair[1].place);
    let pairs = beside.filter_map(|pair| query.pairs.iter().position(|own| *own == (pair[0].term, pair[1].term)));
    Found {
        terms,
        forms: forms.fold(0, |set, form| set | 1 << form),
        pairs: pairs.fold(0, |set, pair| set | 1 << pair),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(terms: &[u64]) -> Matches {
        let matched = |(number, terms): (usize, &u64)| Match {
            number,
            place: Place { chunk: 0, range: 0..1 },
            own: Found {
                terms: *terms,
                forms: 0,
                pairs: 0,
            },
            length: 1,
            heading: None,
        };
        Matches {
            all: terms.iter().enumerate().map(matched).collect(),
            ..Matches::default()
        }
    }

    #[test]
    fn of_too_many_matches_those_with_the_most_terms_are_kept() {
        for (limit, left) in [
            (5, vec![0, 1, 2, 3, 4]),
            (4, vec![1, 2, 4]),
            (2, vec![4]),
            (3, vec![1, 2, 4]),
        ] {
            let mut matches = matches(&[0b1, 0b11, 0b101, 0b10, 0b111]);
            matches.keep_best(limit);
            assert_eq!(
                matches.all.iter().map(|it| it.number).collect::<Vec<_>>(),
                left,
                "{limit}"
            );
        }
        let mut alike = matches(&[0b1; 5]);
        alike.keep_best(2);
        assert_eq!(alike.all.len(), 2);
    }
}
