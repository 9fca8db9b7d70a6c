//! Keys of the chunks of large tool results in working memory.
//!
//! The host splits results that are too long for a conversation and keeps the chunks in working
//! memory. The form of their keys is part of the stored format, and others recognise chunks by
//! it, such as a recall that must not repeat them; therefore it is defined here and not where
//! results are split.

use super::{PathError, StorePath, WorkingEntry};

/// Maximum number of characters of a tool's name, and of a run's id, in a key.
const MAX_NAME_LEN: usize = 40;

/// Maximum number of characters of a name that a tool gives to its result.
const MAX_OWN_NAME_LEN: usize = 120;

/// Category of the notes that hold chunks and outlines.
const CATEGORY: &str = "tool-result";

/// The notation of the keys of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ChunkKeyForm {
    /// `{namespace}/tool-{name}-{run}-chunk{n}` and `{namespace}/tool-{name}-{run}-index`. The default.
    #[default]
    Path,
    /// `{namespace}/tool:{name}:{run}:chunk{n}` and `{namespace}/tool:{name}:{run}:index`; the model
    /// is shown these keys without the namespace.
    Colons,
}

/// The keys of the chunks of one result, and of its outline.
///
/// ```
/// use rockbot_core::store::{ChunkKeyForm, ChunkKeys, StorePath};
///
/// let namespace = StorePath::new("session/abc123")?;
/// let keys = ChunkKeys::new(&namespace, "list_models", "a1b2c3", ChunkKeyForm::Path)?;
/// assert_eq!(keys.chunk(0).as_str(), "session/abc123/tool-list_models-a1b2c3-chunk0");
/// assert_eq!(keys.index().as_str(), "session/abc123/tool-list_models-a1b2c3-index");
/// assert_eq!(ChunkKeys::number_of(keys.chunk(7).as_str()), Some(7));
/// # Ok::<(), rockbot_core::store::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkKeys {
    /// Everything before `chunk{n}` and `index`.
    stem: String,
    /// Number of bytes at the start of `stem` that the model is not shown.
    hidden: usize,
}

impl ChunkKeys {
    /// Creates the keys in `namespace` for the result of tool `name` in `run`.
    ///
    /// `run` must differ from call to call, or a later result replaces the chunks of an earlier
    /// result. The first 40 characters of `name` and `run` count; every character other than a
    /// letter, a digit, `-` and `_` becomes `_`.
    ///
    /// # Errors
    ///
    /// Returns an error if `namespace` is so long that the rest of a key does not fit.
    pub fn new(namespace: &StorePath, name: &str, run: &str, form: ChunkKeyForm) -> Result<Self, PathError> {
        let name = sanitized(name);
        let run = sanitized(run);
        let (stem, hidden) = match form {
            ChunkKeyForm::Path => (format!("{namespace}/tool-{name}-{run}-"), 0),
            ChunkKeyForm::Colons => (format!("{namespace}/tool:{name}:{run}:"), namespace.as_str().len() + 1),
        };
        // The longest key that can occur is validated here, so that `chunk` and `index` cannot fail.
        StorePath::new(&format!("{stem}chunk{}", usize::MAX))?;
        Ok(Self { stem, hidden })
    }

    /// Creates the keys in `namespace` for a result that its tool has
    /// [named](crate::tool::ResultChunks): `{namespace}/{name}-chunk{n}` and
    /// `{namespace}/{name}-index`.
    ///
    /// The first 120 characters of `name` count; every character other than a letter, a digit, `-`,
    /// `_` and `.` becomes `_`.
    ///
    /// ```
    /// # use rockbot_core::store::{ChunkKeys, StorePath};
    /// let keys = ChunkKeys::named(&StorePath::new("session/a")?, "web-https___example.org")?;
    /// assert_eq!(keys.chunk(2).as_str(), "session/a/web-https___example.org-chunk2");
    /// # Ok::<(), rockbot_core::store::PathError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if `namespace` is so long that the rest of a key does not fit.
    pub fn named(namespace: &StorePath, name: &str) -> Result<Self, PathError> {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name = name.chars().take(MAX_OWN_NAME_LEN);
        let name: String = name.map(|c| if is_plain(c) { c } else { '_' }).collect();
        let stem = format!("{namespace}/{name}-");
        StorePath::new(&format!("{stem}chunk{}", usize::MAX))?;
        Ok(Self { stem, hidden: 0 })
    }

    /// Returns the key of chunk number `index`, counted from 0.
    pub fn chunk(&self, index: usize) -> StorePath {
        self.path(&format!("chunk{index}"))
    }

    /// Returns the key of the outline.
    pub fn index(&self) -> StorePath {
        self.path("index")
    }

    fn path(&self, end: &str) -> StorePath {
        StorePath::new(&format!("{}{end}", self.stem)).expect("a longer key was a path")
    }

    /// Returns the common prefix of all keys as the model is shown them.
    pub fn shown_prefix(&self) -> &str {
        &self.stem[self.hidden..]
    }

    /// Returns `key` without the `chunk{n}` or `index` at its end: the prefix that all keys of one
    /// result share.
    pub fn stem_of(key: &str) -> &str {
        let end = key.rfind(['-', ':']).map_or(0, |at| at + 1);
        &key[..end]
    }

    /// Returns the number of the chunk that `key` names, or `None` for an outline and for other keys.
    pub fn number_of(key: &str) -> Option<usize> {
        key[Self::stem_of(key).len()..].strip_prefix("chunk")?.parse().ok()
    }

    /// Returns the category of chunks and outlines.
    pub fn category() -> StorePath {
        StorePath::new(CATEGORY).expect("the category is a path")
    }
}

/// Returns `true` if `entry` belongs to a large result: a chunk or an outline.
pub fn is_result_entry(entry: &WorkingEntry) -> bool {
    entry
        .category
        .as_ref()
        .is_some_and(|category| category.as_str() == CATEGORY)
}

/// Returns `true` if `entry` is a chunk of a large result.
///
/// The outline of the result is not a chunk: it lists the keys of the chunks, so a listing that
/// leaves chunks out still leads to them.
pub fn is_result_chunk(entry: &WorkingEntry) -> bool {
    is_result_entry(entry) && ChunkKeys::number_of(entry.key.as_str()).is_some()
}

/// Returns the first characters of `name` with everything replaced that has a meaning in a path
/// or in Markdown.
fn sanitized(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let characters = name.chars().take(MAX_NAME_LEN);
    characters.map(|c| if is_plain(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, run: &str, form: ChunkKeyForm, stored: &str, shown: &str) {
        let namespace = StorePath::new("session/a").unwrap();
        let keys = ChunkKeys::new(&namespace, name, run, form).unwrap();
        assert_eq!((keys.chunk(12).as_str(), keys.shown_prefix()), (stored, shown));
    }

    #[test]
    fn both_forms() {
        let path = ChunkKeyForm::Path;
        let colons = ChunkKeyForm::Colons;
        check(
            "now",
            "1f",
            path,
            "session/a/tool-now-1f-chunk12",
            "session/a/tool-now-1f-",
        );
        check("now", "1f", colons, "session/a/tool:now:1f:chunk12", "tool:now:1f:");
    }

    #[test]
    fn characters_that_do_not_fit_a_segment_are_replaced() {
        let path = ChunkKeyForm::Path;
        check(
            "../ä b|",
            "`",
            path,
            "session/a/tool-___ä_b_-_-chunk12",
            "session/a/tool-___ä_b_-_-",
        );
        let long = "x".repeat(99);
        let cut = "x".repeat(40);
        let stem = format!("session/a/tool-{cut}-{cut}-");
        check(&long, &long, path, &format!("{stem}chunk12"), &stem);
    }

    #[test]
    fn a_namespace_that_is_too_long_is_refused() {
        let namespace = StorePath::new(&"n".repeat(500)).unwrap();
        assert!(ChunkKeys::new(&namespace, "now", "1", ChunkKeyForm::Path).is_err());
    }
}
