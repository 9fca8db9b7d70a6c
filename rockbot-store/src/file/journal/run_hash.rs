//! The identity of a run as the index keeps it.

use std::hash::{Hash, Hasher};

use rockbot_core::{Digest, TurnId};

/// The identity of a run in 16 bytes, without an allocation.
///
/// The id of a turn is 32 hexadecimal digits of a digest, which are decoded. Any other id is
/// hashed by SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunHash([u8; 16]);

impl RunHash {
    pub(super) fn of(run: &str) -> Self {
        decoded(run)
            .or_else(|| decoded(&Digest::of([run]).short()))
            .map(Self)
            .expect("the short form of a digest is 32 hexadecimal digits")
    }
}

impl RunHash {
    /// Returns the identity as two numbers, for the index of a segment.
    pub(super) fn words(self) -> [u64; 2] {
        let both = u128::from_le_bytes(self.0);
        [both as u64, (both >> 64) as u64]
    }

    /// Returns the identity that [`RunHash::words`] gave these numbers.
    pub(super) fn of_words([low, high]: [u64; 2]) -> Self {
        Self((u128::from(high) << 64 | u128::from(low)).to_le_bytes())
    }
}

impl From<&TurnId> for RunHash {
    fn from(run: &TurnId) -> Self {
        Self::of(run.as_str())
    }
}

impl Hash for RunHash {
    // Half of a digest is hash enough. A derived implementation would also hash the length.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.words()[0]);
    }
}

/// Decodes 32 lower-case hexadecimal digits; `None` for any other text.
fn decoded(text: &str) -> Option<[u8; 16]> {
    let digits: &[u8; 32] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0; 16];
    let mut is_valid = true;
    // Without an early end, so that the compiler can decode all digits at once.
    for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
        is_valid &= pair.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        *byte = nibble(pair[0]) << 4 | nibble(pair[1]);
    }
    is_valid.then_some(bytes)
}

/// Returns the value of a hexadecimal digit.
fn nibble(digit: u8) -> u8 {
    (digit & 15) + 9 * (digit >> 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_turns_are_decoded_and_others_hashed() {
        let id = "0123456789abcdef0f1e2d3c4b5a6978";
        let bytes = [
            0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x0f, 0x1e, 0x2d, 0x3c, 0x4b, 0x5a, 0x69, 0x78,
        ];
        assert_eq!(RunHash::of(id), RunHash(bytes));
        for other in ["", "run", &id.to_uppercase(), &id.replace('0', "g"), &id[1..]] {
            assert_eq!(decoded(other), None, "{other}");
            assert_eq!(RunHash::of(other), RunHash::of(&Digest::of([other]).short()));
        }
    }
}
