//! Mutations of valid documents, for tests of parsers of outside text.

/// Maximum size of a mutated document in bytes.
const MAX_LEN: usize = 32 * 1024;

/// Mutations of each kind of document unless `PROPTEST_CASES` says otherwise.
const CASES: usize = 256;

/// Pieces that parsers stumble over: numbers without a type, halves of characters, nesting,
/// markers of several formats.
const PIECES: [&[u8]; 32] = [
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98",
    b"\xef\xbb\xbf",
    b"\\ud800",
    b"\\u0000",
    "\u{202e}".as_bytes(),
    b"1e999",
    b"-99999999999999999999999999",
    b"18446744073709551616",
    b"NaN",
    b"null",
    b"\"",
    b"'",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"\n",
    b"\r\n",
    b"\r",
    b"\n\n",
    b"\n---\n",
    b"\n```\n",
    b"&a [*a]",
    b"!!t ",
    b"\ndata: ",
    b"<|x|>",
];

/// An endless variety of broken documents: each document of a corpus as it is, and then copies
/// that were cut, repeated, nested, spliced and filled with pieces that parsers stumble over.
///
/// The mutations are the same in each run. Their number is `PROPTEST_CASES`, 256 by default.
///
/// ```
/// use rockbot_core::testing::Mutations;
///
/// Mutations::of([r#"{"name": "cat", "lives": 9}"#]).check(|document| {
///     let parsed = serde_json::from_slice::<serde_json::Value>(document);
///     if let Ok(value) = parsed {
///         assert_eq!(serde_json::from_str::<serde_json::Value>(&value.to_string()).ok(), Some(value));
///     }
/// });
/// ```
#[derive(Debug, Clone)]
pub struct Mutations {
    corpus: Vec<Vec<u8>>,
    cases: usize,
    next: usize,
    state: u64,
}

impl Mutations {
    /// Creates the mutations of the documents of `corpus`.
    ///
    /// # Panics
    ///
    /// Panics if there is no document.
    pub fn of<D: AsRef<[u8]>>(corpus: impl IntoIterator<Item = D>) -> Self {
        let corpus: Vec<_> = corpus.into_iter().map(|document| document.as_ref().to_vec()).collect();
        assert!(!corpus.is_empty(), "mutations need at least one valid document");
        let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
        Self {
            cases: cases.unwrap_or(CASES) + corpus.len(),
            corpus,
            next: 0,
            state: 0x5eed,
        }
    }

    /// Divides the number of mutations, for checks that take long.
    #[must_use]
    pub fn divided_by(mut self, divisor: usize) -> Self {
        self.cases = (self.cases / divisor.max(1)).max(self.corpus.len());
        self
    }

    /// Runs `check` on each document. One on which it panics is printed.
    pub fn check(self, mut check: impl FnMut(&[u8])) {
        for document in self {
            let shown = Shown(&document);
            check(&document);
            drop(shown);
        }
    }

    /// Runs `check` on each document as text, in which invalid bytes are replaced.
    pub fn check_text(self, mut check: impl FnMut(&str)) {
        self.check(|document| check(&String::from_utf8_lossy(document)));
    }

    /// Returns a number below `limit`, which is above zero: SplitMix64.
    fn below(&mut self, limit: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.state;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((number ^ (number >> 31)) % limit as u64).unwrap_or(0)
    }

    /// Returns a part of `document`.
    fn slice(&mut self, document: &[u8]) -> std::ops::Range<usize> {
        let a = self.below(document.len() + 1);
        let b = self.below(document.len() + 1);
        a.min(b)..a.max(b)
    }

    fn mutate(&mut self, document: &mut Vec<u8>) {
        let range = self.slice(document);
        match self.below(8) {
            0 => document.truncate(range.end),
            1 => drop(document.drain(range)),
            2 => {
                let repeated = document[range.clone()].repeat(1 + self.below(64));
                document.splice(range.end..range.end, repeated);
            }
            3 => {
                let piece = PIECES[self.below(PIECES.len())];
                document.splice(range.end..range.end, piece.iter().copied());
            }
            4 => {
                let piece = PIECES[self.below(PIECES.len())];
                document.splice(range, piece.repeat(1 + self.below(2_000)));
            }
            5 => {
                let other = self.below(self.corpus.len());
                let other = self.corpus[other].clone();
                let part = self.slice(&other);
                document.splice(range, other[part].to_vec());
            }
            6 => {
                let byte = u8::try_from(self.below(256)).unwrap_or(0);
                document[range].iter_mut().take(1).for_each(|place| *place = byte);
            }
            _ => {
                let closers = document[range.clone()].to_vec();
                document.splice(range.start..range.start, closers);
            }
        }
        document.truncate(MAX_LEN);
    }
}

impl Iterator for Mutations {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let number = self.next;
        self.next += 1;
        if number >= self.cases {
            return None;
        }
        let mut document = self.corpus[number % self.corpus.len()].clone();
        if number >= self.corpus.len() {
            for _ in 0..=self.below(4) {
                self.mutate(&mut document);
            }
        }
        Some(document)
    }
}

/// Prints the document on which a check panicked.
struct Shown<'a>(&'a [u8]);

impl Drop for Shown<'_> {
    #[expect(clippy::print_stderr, reason = "this is how a test tells which document failed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the check panicked on this document: {}", self.0.escape_ascii());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_document_comes_first_and_then_its_mutations() {
        let all: Vec<_> = Mutations::of(["one", "two"]).collect();
        assert_eq!(all[..2], [b"one".to_vec(), b"two".to_vec()]);
        assert!(all.len() > 2 && all.iter().all(|document| document.len() <= MAX_LEN));
        let again: Vec<_> = Mutations::of(["one", "two"]).collect();
        assert_eq!(all, again);
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert!(distinct.len() > all.len() / 2, "{} of {}", distinct.len(), all.len());
        assert!(Mutations::of([b""]).all(|document| document.len() <= MAX_LEN));
    }

    #[test]
    #[should_panic(expected = "broken")]
    fn a_check_that_fails_fails() {
        Mutations::of(["whole"]).check(|document| assert_eq!(document, b"whole", "broken"));
    }
}
