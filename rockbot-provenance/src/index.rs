//! An index of a long text: tells in a few steps that a value does not stand in it.

/// Length of the pieces of text that are indexed, in bytes.
const PIECE: usize = 4;

/// The pieces of four bytes of a long text, with upper and lower case as one.
///
/// A value of which one piece is missing stands nowhere in the text. The index is a Bloom filter:
/// it has at least one bit for each byte of the text, and is made in about one millisecond for
/// each megabyte. It pays where many calls are examined against one text, as in a turn that has
/// read a long page.
#[derive(Debug, Clone)]
pub struct TextIndex {
    bits: Box<[u64]>,
    /// The number of high bits of a hash that are the number of a bit.
    width: u32,
}

impl TextIndex {
    /// Minimum length of a text for which an index pays, in bytes: a shorter text is searched as fast.
    pub const MIN_TEXT: usize = 16 * 1024;

    /// Creates the index of a text.
    pub fn of(text: &str) -> Self {
        let width = text.len().next_power_of_two().trailing_zeros().clamp(6, u32::BITS);
        let mut index = Self {
            bits: vec![0; (1_usize << width) / u64::BITS as usize].into(),
            width,
        };
        for hash in hashes(text) {
            let (word, bit) = index.place(hash);
            index.bits[word] |= bit;
        }
        index
    }

    /// Returns `false` if the value does not stand in the text, whatever its case.
    pub(crate) fn may_have(&self, value: &str) -> bool {
        hashes(value).all(|hash| {
            let (word, bit) = self.place(hash);
            self.bits[word] & bit != 0
        })
    }

    fn place(&self, hash: u32) -> (usize, u64) {
        let bit = (u64::from(hash) >> (u32::BITS - self.width)) as usize;
        (bit / u64::BITS as usize, 1 << (bit % u64::BITS as usize))
    }
}

/// Returns a hash for each piece of a text.
fn hashes(text: &str) -> impl Iterator<Item = u32> {
    // The bit that tells upper from lower case, in each byte.
    const CASE: u32 = 0x2020_2020;
    // A multiplier that mixes the bits well (Fibonacci hashing).
    const MIX: u32 = 0x9E37_79B1;
    let pieces = text.as_bytes().windows(PIECE).filter_map(|piece| piece.try_into().ok());
    pieces.map(|piece| (u32::from_le_bytes(piece) | CASE).wrapping_mul(MIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_its_own_parts_in_any_case() {
        let text = "The harvest of 2026 was good; write to Eve@Evil.example.\n".repeat(400);
        let index = TextIndex::of(&text);
        for value in [
            "harvest",
            "eve@evil.example",
            "GOOD; WRITE",
            "of",
            "",
            "2026 was good; write to eve",
        ] {
            assert!(index.may_have(value), "{value}");
        }
        for value in ["adam@evil.example", "harvests", "2027"] {
            assert!(!index.may_have(value), "{value}");
        }
        assert!(!TextIndex::of("").may_have("word"));
    }
}
