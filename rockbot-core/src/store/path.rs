//! Paths: names with slashes, of skills, categories and entries of working memory.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Maximum length of a path, in bytes.
const MAX_BYTES: usize = 512;

/// A name of segments separated by slashes, such as `mcp/email`. Case-sensitive.
///
/// ```
/// # use rockbot_core::store::StorePath;
/// let path = StorePath::new("session/a/notes")?;
/// assert!(path.is_within(&StorePath::new("session/a")?));
/// assert!(!path.is_within(&StorePath::new("session/a/no")?));
/// assert!(StorePath::new("session/../secret").is_err());
/// # Ok::<(), rockbot_core::store::PathError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StorePath(Arc<str>);

impl StorePath {
    /// Parses a path.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is longer than 512 bytes, if a segment is empty, `.`, `..` or has
    /// surrounding white space, or if it contains a backslash or a control character.
    pub fn new(text: &str) -> Result<Self, PathError> {
        let is_segment = |segment: &str| {
            !matches!(segment, "" | "." | "..")
                && segment.trim() == segment
                && !segment.contains(|c: char| c == '\\' || c.is_control())
        };
        if text.len() > MAX_BYTES || !text.split('/').all(is_segment) {
            return Err(PathError(text.chars().take(80).collect()));
        }
        Ok(Self(text.into()))
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the segments, in order.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// Returns the first two segments, such as `session/abc`: the namespace of an entry in working
    /// memory.
    pub fn namespace(&self) -> &str {
        let end = self.0.match_indices('/').nth(1).map_or(self.0.len(), |(at, _)| at);
        &self.0[..end]
    }

    /// Returns `true` if the path equals `parent` or is below it. `ab` is not within `a`.
    pub fn is_within(&self, parent: &Self) -> bool {
        let rest = self.0.strip_prefix(&*parent.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl TryFrom<String> for StorePath {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, PathError> {
        Self::new(&text)
    }
}

impl From<StorePath> for String {
    fn from(path: StorePath) -> Self {
        path.as_str().to_owned()
    }
}

impl Borrow<str> for StorePath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StorePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for StorePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// The error of a text that is not a valid path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a name here: use words with single slashes between them, such as `projects/rust`")]
pub struct PathError(String);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_that_are_no_paths() {
        let long = "a".repeat(513);
        for text in [
            "", "/", "/a", "a/", "a//b", "..", "a/../b", "./a", " a", "a /b", "a\\b", "a\nb", &long,
        ] {
            assert!(StorePath::new(text).is_err(), "{text:?}");
            assert!(serde_json::from_value::<StorePath>(text.into()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_namespace_is_two_segments() {
        for (key, expected) in [("a", "a"), ("a/b", "a/b"), ("a/b/c", "a/b"), ("a/b/c/d", "a/b")] {
            assert_eq!(StorePath::new(key).unwrap().namespace(), expected);
        }
    }

    proptest! {
        #[test]
        fn within_means_the_first_segments_are_the_same(
            parent in "[ab]{1,2}(/[ab]{1,2}){0,2}",
            child in "[ab]{1,2}(/[ab]{1,2}){0,3}",
        ) {
            let parent = StorePath::new(&parent).unwrap();
            let child = StorePath::new(&child).unwrap();
            let parents: Vec<_> = parent.segments().collect();
            let children: Vec<_> = child.segments().collect();
            prop_assert_eq!(child.is_within(&parent), children.starts_with(&parents));
        }
    }
}
