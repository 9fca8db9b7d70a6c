//! SHA-256 digests: what a turn's identity and an approval's grant are bound to.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of some parts, each prefixed by its length so that moving a boundary changes the digest.
///
/// ```
/// # use rockbot_core::Digest;
/// assert_eq!(Digest::of(["a", "b"]), Digest::of(["a", "b"]));
/// assert_ne!(Digest::of(["a", "b"]), Digest::of(["ab", ""]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `parts`, in order.
    pub fn of<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            let part = part.as_ref();
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    /// The first 128 bits as 32 hexadecimal digits: enough for a name that nobody can forge.
    pub fn short(&self) -> String {
        hex(&self.0[..16])
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        unhex(&text)
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("a digest is 64 hexadecimal digits"))
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}
