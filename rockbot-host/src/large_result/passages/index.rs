//! The index of one chunk: its statements, and the places of their terms.

use std::ops::Range;

use rockbot_core::search::{Analyzer, UnicodeAnalyzer};

use super::escapes::unescaped;
use super::statements::statements_of;

/// The index of a chunk: for each term the places where it stands, and the statements in order.
///
/// It holds numbers alone and takes about as much memory as the text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkIndex {
    pub(super) statements: Box<[IndexedStatement]>,
    /// The distinct words, ascending.
    words: Box<[Word]>,
    /// Places of all words, ascending for each word.
    places: Box<[u32]>,
}

/// A word as written: the digests of its term and of itself, and the index of its first place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Word {
    term: u32,
    written: u32,
    first: u32,
}

/// A statement that has terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexedStatement {
    start: u32,
    end: u32,
    /// Place of its first term. A place between two statements is left out, so that no pair of terms
    /// spans them.
    first_place: u32,
    /// Number of its terms.
    pub(super) terms: u32,
    /// Level of the heading that it is, 1 to 3; 0 for all else.
    pub(super) level: u8,
}

impl IndexedStatement {
    /// Returns the byte range in the chunk; the end may be in the next chunk.
    pub(super) fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl ChunkIndex {
    /// Reads a chunk of `length` bytes, which `text` goes on behind: a statement at the border of two
    /// chunks is whole in the index of the first.
    pub(super) fn of(text: &str, length: usize) -> Self {
        let mut statements = Vec::new();
        let mut words = Vec::new();
        let mut place = 0;
        let statements_within = statements_of(text).into_iter();
        for statement in statements_within.take_while(|statement| statement.range.start < length) {
            let first_place = place;
            UnicodeAnalyzer.words(
                &unescaped(text[statement.range.clone()].into()),
                &mut |term, written| {
                    words.push((digest(term), digest(written), place));
                    place += 1;
                },
            );
            if place > first_place || statement.level > 0 {
                statements.push(IndexedStatement {
                    start: statement.range.start as u32,
                    end: statement.range.end as u32,
                    first_place,
                    terms: place - first_place,
                    level: statement.level,
                });
                place += 1;
            }
        }
        Self::sorted(statements, words)
    }

    fn sorted(statements: Vec<IndexedStatement>, mut words: Vec<(u32, u32, u32)>) -> Self {
        words.sort_unstable();
        let mut distinct: Vec<Word> = Vec::new();
        for (&(term, written, _), first) in words.iter().zip(0..) {
            if distinct
                .last()
                .is_none_or(|last| (last.term, last.written) != (term, written))
            {
                distinct.push(Word { term, written, first });
            }
        }
        Self {
            statements: statements.into(),
            words: distinct.into(),
            places: words.into_iter().map(|(_, _, place)| place).collect(),
        }
    }

    /// Returns the size in memory, in bytes.
    pub(super) fn size(&self) -> usize {
        size_of_val(&*self.statements) + size_of_val(&*self.words) + size_of_val(&*self.places)
    }

    /// Returns where the term with the digest `term` stands, word by word: the digest of the word as
    /// written, with indices of statements and places in the chunk.
    pub(super) fn find(&self, term: u32) -> impl Iterator<Item = (u32, u32, u32)> {
        let first = self.words.partition_point(|word| word.term < term);
        let words = self.words[first..].iter().take_while(move |word| word.term == term);
        words.zip(first + 1..).flat_map(move |(word, next)| {
            let end = self
                .words
                .get(next)
                .map_or(self.places.len(), |next| next.first as usize);
            let places = &self.places[word.first as usize..end];
            let mut statement = 0;
            places.iter().map(move |place| {
                let behind = self.statements[statement..].partition_point(|statement| statement.first_place <= *place);
                statement += behind.saturating_sub(1);
                (word.written, statement as u32, *place)
            })
        })
    }
}

/// Returns a digest of a term (FNV-1a). Two terms rarely share one, and then a passage too many
/// is found.
pub(super) fn digest(term: &str) -> u32 {
    term.bytes().fold(0x811c_9dc5, |digest, byte| {
        (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places_of(index: &ChunkIndex, term: &str) -> Vec<(u32, u32)> {
        let found = index.find(digest(term));
        let mut places: Vec<_> = found.map(|(_, statement, place)| (statement, place)).collect();
        places.sort_unstable();
        places
    }

    #[test]
    fn terms_are_found_by_statement_and_place() {
        let text = "# Gates\n\nThe iron gate is shut. Iron rusts.\nNo gate, no iron gate!\n";
        let index = ChunkIndex::of(text, text.len());
        let shown: Vec<_> = index
            .statements
            .iter()
            .map(|it| (text[it.range()].trim(), it.level))
            .collect();
        assert_eq!(
            shown,
            [
                ("# Gates", 1),
                ("The iron gate is shut.", 0),
                ("Iron rusts.", 0),
                ("No gate, no iron gate!", 0),
            ]
        );
        let statements = |term| {
            places_of(&index, term)
                .into_iter()
                .map(|(statement, _)| statement)
                .collect::<Vec<_>>()
        };
        assert_eq!(statements("iron"), [1, 2, 3]);
        assert_eq!(statements("gat"), [0, 1, 3, 3]);
        assert_eq!(statements("gold"), [0_u32; 0]);
        let iron = places_of(&index, "iron")[0].1;
        let gate = places_of(&index, "gat")[1].1;
        assert_eq!(iron + 1, gate);
    }

    #[test]
    fn no_pair_of_places_spans_two_statements() {
        let text = "One is red. Green is two.\n";
        let index = ChunkIndex::of(text, text.len());
        let red = places_of(&index, "red")[0].1;
        let green = places_of(&index, "green")[0].1;
        assert!(green > red + 1);
    }

    #[test]
    fn the_last_statement_ends_in_the_next_chunk() {
        let text = "Here is one. The other goes on. And a third.";
        let index = ChunkIndex::of(text, 20);
        let last = index.statements[index.statements.len() - 1];
        assert_eq!(
            (index.statements.len(), &text[last.range()]),
            (2, "The other goes on. ")
        );
    }
}
