//! A fast hash for keys that no untrusted source chooses.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by names that the program registered.
///
/// Its hash takes a fraction of the time of the standard library's, and does not resist crafted
/// keys: with such keys an untrusted source could make all operations slow.
pub type FoldMap<K, V> = HashMap<K, V, BuildHasherDefault<FoldHasher>>;

/// A hash by multiplication of eight bytes at a time.
///
/// ```
/// use std::hash::{Hash, Hasher};
/// use rockbot_core::support::FoldHasher;
///
/// let digest = |text: &str| {
///     let mut hasher = FoldHasher::default();
///     text.hash(&mut hasher);
///     hasher.finish()
/// };
/// assert_ne!(digest("a"), digest("b"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct FoldHasher(u64);

impl FoldHasher {
    fn add(&mut self, word: u64) {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let product = u128::from(self.0 ^ word).wrapping_mul(u128::from(FACTOR)) ^ u128::from(word.rotate_left(32));
        self.0 = (product as u64 ^ (product >> 64) as u64).rotate_left(23);
    }
}

impl Hasher for FoldHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.add(last ^ ((bytes.len() as u64) << 56));
    }

    fn write_u8(&mut self, byte: u8) {
        self.add(u64::from(byte));
    }

    fn write_u64(&mut self, word: u64) {
        self.add(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.add(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
