//! A fast hash of words that anyone may choose.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A hash by multiplication with a secret of each map: the authors of stored texts do not know
/// the secret, and so cannot choose words that collide.
#[derive(Debug, Clone)]
pub(super) struct WordHash {
    start: u64,
    factor: u64,
}

impl Default for WordHash {
    fn default() -> Self {
        let random = RandomState::new();
        Self {
            start: random.hash_one(0),
            factor: random.hash_one(1) | 1,
        }
    }
}

impl BuildHasher for WordHash {
    type Hasher = WordHasher;

    fn build_hasher(&self) -> WordHasher {
        WordHasher {
            state: self.start,
            factor: self.factor,
        }
    }
}

/// The hash of one word, eight bytes at a time.
pub(super) struct WordHasher {
    state: u64,
    factor: u64,
}

impl WordHasher {
    fn add(&mut self, bytes: u64) {
        let product = u128::from(self.state ^ bytes) * u128::from(self.factor);
        self.state = (product as u64 ^ (product >> 64) as u64).rotate_left(23);
    }
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.add(last ^ ((bytes.len() as u64) << 56));
    }

    // The end of a text: its length is in the hash already.
    fn write_u8(&mut self, _: u8) {}

    fn finish(&self) -> u64 {
        self.state
    }
}
