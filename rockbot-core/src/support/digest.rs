//! The SHA-256 digest that identifies turns, binds approvals to arguments and detects changed
//! documents.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest of a sequence of parts.
///
/// Each part is prefixed by its length, so that moving a boundary between two parts changes the
/// digest. Digests are part of the journal format and of grants: the same parts give the same
/// digest in every version. A digest is serialized as 64 lower-case hexadecimal digits, which is
/// also its [`Display`](fmt::Display) form.
///
/// ```
/// # use rockbot_core::Digest;
/// assert_eq!(Digest::of(["a", "b"]), Digest::of(["a", "b"]));
/// assert_ne!(Digest::of(["a", "b"]), Digest::of(["ab", ""]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Computes the digest of `parts`, in order.
    pub fn of<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            let part = part.as_ref();
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    /// Returns the first 128 bits as 32 hexadecimal digits, for names of files and keys that must not
    /// be forgeable.
    pub fn short(&self) -> String {
        text(&digits(&self.0)[..32]).to_owned()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(text(&digits(&self.0)))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text(&digits(&self.0)))
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

/// Returns the lower-case hexadecimal digits of all bytes.
fn digits(bytes: &[u8; 32]) -> [u8; 64] {
    let mut digits = [0; 64];
    // By arithmetic and without branches, which the compiler turns into a few vector instructions.
    for (pair, byte) in digits.as_chunks_mut().0.iter_mut().zip(bytes) {
        *pair = [byte >> 4, byte & 15].map(|digit| digit + b'0' + u8::from(digit > 9) * (b'a' - b'0' - 10));
    }
    digits
}

/// Returns digits as a text.
fn text(digits: &[u8]) -> &str {
    str::from_utf8(digits).expect("hexadecimal digits are ASCII")
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().as_chunks::<2>().0) {
        let [high, low] = pair.map(|digit| (digit & 15) + 9 * (digit >> 6));
        *byte = high << 4 | low;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Digests must never change: journals and grants written by other versions contain them.
    #[test]
    fn is_the_sha_256_of_length_prefixed_parts() {
        let hex = "cf6ab613e3942391f88ed698557e1680f160bd10e88c6b668c50360c10930e2b";
        let digest = Digest::of(["a", "b"]);
        assert_eq!(digest.to_string(), hex);
        assert_eq!(digest.short(), hex[..32]);
        assert_eq!(format!("{digest:?}"), format!("Digest({hex})"));
    }

    #[test]
    fn malformed_digests_are_rejected() {
        for text in [
            "",
            "00",
            &"0".repeat(63),
            &"g".repeat(64),
            &"ä".repeat(32),
            &"+1".repeat(32),
        ] {
            assert!(serde_json::from_value::<Digest>(text.into()).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn comes_back_from_json(parts in prop::collection::vec(".*", 0..4)) {
            let digest = Digest::of(&parts);
            let json = serde_json::to_string(&digest).unwrap();
            prop_assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        }

        #[test]
        fn other_parts_are_another_digest(a in prop::collection::vec("[ab]{0,2}", 0..4), b in prop::collection::vec("[ab]{0,2}", 0..4)) {
            prop_assert_eq!(a == b, Digest::of(&a) == Digest::of(&b));
        }
    }
}
