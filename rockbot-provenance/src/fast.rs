//! A hash for sets of words and numbers that no attacker fills.

use std::hash::{BuildHasherDefault, Hasher};

/// The state of maps and sets by this hash.
pub(crate) type Fast = BuildHasherDefault<Fnv>;

/// The hash FNV-1a: short for short words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x0100_0000_01b3);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        // Maps take the high bits, too.
        self.0 ^ self.0.rotate_left(29)
    }
}
