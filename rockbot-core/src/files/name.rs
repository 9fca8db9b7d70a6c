//! File names from ids that any sender may have chosen.

use std::fmt::Write;

pub use crate::id::MAX_ID_BYTES;

/// Maximum length of one path segment: file systems allow 255 bytes, and endings are appended.
const PIECE: usize = 200;

/// Separator between the pieces of a long name, which are nested folders.
const JOINT: &str = "+/+";

/// The error of an id that is too long to name a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id of {len} bytes is too long to name a file: use one of at most {MAX_ID_BYTES} bytes")]
#[non_exhaustive]
pub struct IdTooLong {
    /// Length of the id, in bytes.
    pub len: usize,
}

/// Encodes `id` as a file name, without an ending: the id itself if it consists of `a-z`, `0-9`,
/// `_`, `-` and inner dots. Every other byte becomes `%` and two hexadecimal digits.
///
/// The encoding is injective, also on file systems that ignore case. No name leaves its folder or
/// has a special meaning to the system. A name of more than 200 characters is cut into nested
/// folders, `first+/+second+/+last`.
///
/// ```
/// use rockbot_core::files::{decode, encode};
///
/// assert_eq!(encode("room-7.b")?, "room-7.b");
/// assert_eq!(encode("../Ä")?, "%2e.%2f%c3%84");
/// assert_eq!(decode("%2e.%2f%c3%84").as_deref(), Some("../Ä"));
/// # Ok::<(), rockbot_core::files::IdTooLong>(())
/// ```
///
/// # Errors
///
/// Returns an error if the id is longer than [`MAX_ID_BYTES`].
pub fn encode(id: &str) -> Result<String, IdTooLong> {
    if id.len() > MAX_ID_BYTES {
        return Err(IdTooLong { len: id.len() });
    }
    let mut name = String::with_capacity(id.len() + 8);
    let last = id.len().saturating_sub(1);
    let reserved = is_reserved(id);
    for (at, byte) in id.bytes().enumerate() {
        let plain = match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => at > 0 || !reserved,
            b'.' => at > 0 && at < last,
            _ => false,
        };
        if plain {
            name.push(char::from(byte));
        } else {
            write!(name, "%{byte:02x}").expect("a text takes in everything");
        }
    }
    Ok(match name.len() {
        0 => "%".to_owned(),
        len if len <= PIECE => name,
        _ => cut(&name),
    })
}

/// Returns the id whose file name is `name`, or `None` if [`encode`] never writes this name.
pub fn decode(name: &str) -> Option<String> {
    let id = unescape(&name.replace(JOINT, ""))?;
    encode(&id).is_ok_and(|encoded| encoded == name).then_some(id)
}

fn unescape(name: &str) -> Option<String> {
    if name == "%" {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => hex(rest.next()?)? << 4 | hex(rest.next()?)?,
            plain => plain,
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

fn cut(name: &str) -> String {
    // A name is ASCII, so every cut is one between characters.
    let pieces: Vec<_> = (0..name.len())
        .step_by(PIECE)
        .map(|at| &name[at..name.len().min(at + PIECE)])
        .collect();
    pieces.join(JOINT)
}

/// Returns `true` if Windows takes this for a device, whatever follows the first dot. Names with
/// other letters than lower-case letters do not stay as they are anyway.
fn is_reserved(id: &str) -> bool {
    let stem = id.split('.').next().unwrap_or_default();
    let numbered = |device| matches!(stem.strip_prefix(device).map(str::as_bytes), Some([b'0'..=b'9']));
    matches!(stem, "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn check(id: &str, name: &str) {
        assert_eq!(encode(id).unwrap(), name);
        assert_eq!(decode(name).as_deref(), Some(id));
    }

    #[test]
    fn ids_as_names() {
        check("session-1_b.2", "session-1_b.2");
        check("", "%");
        check("%", "%25");
        check("A", "%41");
        check("a/b\\c", "a%2fb%5cc");
        check("..", "%2e%2e");
        check(".hidden", "%2ehidden");
        check("a.", "a%2e");
        check("a ", "a%20");
        check("con", "%63on");
        check("com1.json", "%63om1.json");
        check("console", "console");
        check("a\0\n", "a%00%0a");
        check("@+~", "%40%2b%7e");
        check("\u{e9}", "%c3%a9");
        check("e\u{301}", "e%cc%81");
        let long = "x".repeat(450);
        let piece = "x".repeat(200);
        check(&long, &format!("{piece}+/+{piece}+/+{}", "x".repeat(50)));
    }

    #[test]
    fn other_names_belong_to_no_principal() {
        for name in [
            "", "A", "a/b", "%4", "%4A", "%61", "%ff", ".", "a.", "con", "+", "a+/+b", "../x", "%zz",
        ] {
            assert_eq!(decode(name), None, "{name}");
        }
    }

    #[test]
    fn an_id_may_have_a_kilobyte() {
        let id = "Ä".repeat(512);
        assert_eq!(decode(&encode(&id).unwrap()), Some(id.clone()));
        assert_eq!(encode(&format!("{id}x")), Err(IdTooLong { len: 1025 }));
    }

    fn is_portable(name: &str) -> bool {
        name.split('/').all(|piece| {
            let stem = piece.split('.').next().unwrap_or_default();
            let chars = piece
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'%' | b'+'));
            let edges = !piece.is_empty() && !piece.starts_with('.') && !piece.ends_with('.');
            chars && edges && piece.len() <= PIECE + 2 && !is_reserved(stem)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// 100 times 100 ids: those of a set must not share a name either.
        #[test]
        fn ids_come_back_and_never_share_a_name(
            ids in prop::collection::vec(prop_oneof!["\\PC{0,40}", ".{0,12}", "[a-cA-C./%+@ ]{0,8}", "(con|nul|lpt1|CoM2)[. a]{0,2}", "[aÄ.]{180,340}"], 100),
        ) {
            let mut names = HashMap::new();
            for id in ids {
                let name = encode(&id).unwrap();
                prop_assert!(is_portable(&name), "{name}");
                prop_assert_eq!(decode(&name), Some(id.clone()));
                let known = names.entry(name.to_lowercase()).or_insert_with(|| id.clone());
                prop_assert_eq!(&*known, &id);
            }
        }

        #[test]
        fn a_name_that_means_something_is_the_one_name_of_its_id(name in "[a-cA-C0-9./%+@ ]{0,12}") {
            if let Some(id) = decode(&name) {
                prop_assert_eq!(encode(&id).unwrap(), name);
            }
        }
    }
}
