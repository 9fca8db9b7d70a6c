//! A hash that costs nothing, for keys that are digests already.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use super::FoldHasher;

/// A map by keys that are digests, such as [`TurnId`](crate::TurnId)s.
///
/// Its hash is the first half of the digest itself, so a lookup reads the key and computes
/// nothing. Any other key is hashed as in a [`FoldMap`](super::FoldMap), which does not resist
/// crafted keys either.
pub type DigestMap<K, V> = HashMap<K, V, BuildHasherDefault<DigestHasher>>;

/// A set of such keys as [`DigestMap`] has.
pub type DigestSet<K> = HashSet<K, BuildHasherDefault<DigestHasher>>;

/// A hash of keys that consist of one value: a digest as 32 hexadecimal digits, or as a number.
///
/// ```
/// use std::hash::{Hash, Hasher};
/// use rockbot_core::support::DigestHasher;
///
/// let hash = |text: &str| {
///     let mut hasher = DigestHasher::default();
///     text.hash(&mut hasher);
///     hasher.finish()
/// };
/// assert_eq!(hash("00000000000000001111111111111111"), 0);
/// assert_ne!(hash("a"), hash("b"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = match bytes.as_chunks::<8>() {
            ([one, two, _, _], []) => nibbles(*one) | nibbles(*two) << 4,
            _ => {
                let mut hasher = FoldHasher::default();
                hasher.write(bytes);
                hasher.finish()
            }
        };
    }

    /// Ignores the mark that ends a text: a key is one value.
    fn write_u8(&mut self, _: u8) {}

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Returns the values of eight hexadecimal digits, each in a byte of its own.
fn nibbles(digits: [u8; 8]) -> u64 {
    let digits = u64::from_le_bytes(digits);
    // Letters have bit 6, and their low bits count from 1.
    (digits & 0x0f0f_0f0f_0f0f_0f0f) + 9 * (digits >> 6 & 0x0101_0101_0101_0101)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Digest, TurnId};

    fn hash(bytes: &[u8]) -> u64 {
        let mut hasher = DigestHasher::default();
        hasher.write(bytes);
        hasher.finish()
    }

    #[test]
    fn the_hash_of_a_digest_is_its_first_half() {
        let digits = b"0f1e2d3c4b5a69788796a5b4c3d2e1f0";
        let expected = digits[..8]
            .iter()
            .zip(&digits[8..16])
            .rev()
            .fold(0, |word, (low, high)| {
                let value = |digit: u8| u64::from(char::from(digit).to_digit(16).unwrap());
                word << 8 | value(*high) << 4 | value(*low)
            });
        assert_eq!(hash(digits), expected);
    }

    #[test]
    fn keys_of_any_form_are_found() {
        let mut map = DigestMap::default();
        let digest = |number: u32| TurnId::from(Digest::of([number.to_string()]).short());
        let keys = || {
            (0..300)
                .map(digest)
                .chain((0..300).map(|number| TurnId::from(format!("run {number}"))))
        };
        map.extend(keys().zip(0..));
        assert_eq!(
            keys().map(|key| map[&key]).collect::<Vec<_>>(),
            (0..600).collect::<Vec<_>>()
        );
    }

    #[test]
    fn other_keys_spread_over_all_bits() {
        let low: DigestSet<u64> = (0..64_u32).map(|number| hash(&number.to_le_bytes()) & 0xff).collect();
        assert!(low.len() > 40, "{}", low.len());
    }
}
