//! The encoding of nested names as file paths: one folder for each segment.

use rockbot_core::files::{IdTooLong, decode, encode};
use rockbot_core::store::StorePath;

/// Maximum depth of the folders of one path; a deeper path is encoded as a single name.
///
/// Folders are listed to a depth of 40; a principal and an id may take 16 each.
const MAX_FOLDERS: usize = 8;

/// Encodes `path` as a relative file path. The encoding is injective, also on file systems that
/// ignore case.
///
/// # Errors
///
/// Returns an error if the encoded name is too long for a file system.
pub(crate) fn encode_path(path: &StorePath) -> Result<String, IdTooLong> {
    let segments: Vec<_> = path.segments().map(encode).collect::<Result<_, _>>()?;
    let name = segments.join("/");
    if name.matches('/').count() > MAX_FOLDERS {
        encode(path.as_str())
    } else {
        Ok(name)
    }
}

/// Decodes a relative file path. A segment that [`encode`] never produces was named by another
/// program, and is returned unchanged.
pub(crate) fn decode_path(name: &str) -> String {
    let segments = segments(name).into_iter();
    let decoded: Vec<_> = segments
        .map(|segment| decode(segment).unwrap_or_else(|| segment.to_owned()))
        .collect();
    decoded.join("/")
}

/// Splits an encoded path into its folder, if it has one, and the name in it.
pub(crate) fn split_last(name: &str) -> (Option<&str>, &str) {
    let last = segments(name).pop().unwrap_or(name);
    let folder = name[..name.len() - last.len()].strip_suffix('/');
    (folder, last)
}

/// Splits an encoded path into its segments. The pieces of a long segment, joined by `+/+`, stay
/// together.
fn segments(name: &str) -> Vec<&str> {
    let is_end = |at: &usize| !(name[..*at].ends_with('+') && name[*at..].starts_with("/+"));
    let ends = name.match_indices('/').map(|(at, _)| at).filter(is_end);
    let mut segments = Vec::new();
    let mut start = 0;
    for end in ends {
        segments.push(&name[start..end]);
        start = end + 1;
    }
    segments.push(&name[start..]);
    segments
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> StorePath {
        StorePath::new(text).unwrap()
    }

    #[test]
    fn paths_as_names() {
        let long = "x".repeat(250);
        let cut = format!("{}+/+{}", "x".repeat(200), "x".repeat(50));
        for (text, name) in [
            ("mcp/email", "mcp/email".to_owned()),
            ("User/a.json", "%55ser/a.json".to_owned()),
            (&format!("a/{long}/b"), format!("a/{cut}/b")),
            (&["a"; 12].join("/"), ["a"; 12].join("%2f")),
        ] {
            assert_eq!(encode_path(&path(text)).unwrap(), name);
            assert_eq!(decode_path(&name), text);
        }
        assert_eq!(decode_path("User/ä b"), "User/ä b", "as another program wrote it");
    }

    #[test]
    fn a_name_and_its_folder() {
        for (name, parts) in [
            ("a", (None, "a")),
            ("a/b", (Some("a"), "b")),
            ("a/b/c", (Some("a/b"), "c")),
            ("a/b+/+c", (Some("a"), "b+/+c")),
            ("a+/+b/c", (Some("a+/+b"), "c")),
        ] {
            assert_eq!(split_last(name), parts);
        }
    }

    proptest! {
        #[test]
        fn paths_come_back_and_never_share_a_name(
            texts in prop::collection::vec("[a-cA-C.%+@äé-]{1,6}(/[a-cA-C.%+@äé-]{1,3}){0,14}", 40),
        ) {
            let mut names = HashMap::new();
            for path in texts.iter().filter_map(|text| StorePath::new(text).ok()) {
                let name = encode_path(&path).unwrap();
                prop_assert!(!name.split('/').any(|piece| matches!(piece, "" | "." | "..") || piece.starts_with('@')));
                prop_assert!(name.matches('/').count() <= 8);
                prop_assert_eq!(decode_path(&name), path.as_str());
                let known = names.entry(name.to_lowercase()).or_insert_with(|| path.clone());
                prop_assert_eq!(&*known, &path);
            }
        }
    }
}
