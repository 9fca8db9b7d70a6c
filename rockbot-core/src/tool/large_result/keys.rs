//! What the chunks of a result are called in working memory.

use crate::store::{PathError, StorePath};

/// The longest part of a tool's name, and of a run's id, in a key: in characters.
const NAME_LEN: usize = 40;

/// How the keys of chunks are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChunkKeyForm {
    /// `{namespace}/tool-{name}-{run}-chunk{n}` and `{namespace}/tool-{name}-{run}-index`.
    #[default]
    Path,
    /// `{namespace}/tool:{name}:{run}:chunk{n}` and `{namespace}/tool:{name}:{run}:index`; the model is shown them
    /// without the namespace.
    Colons,
}

/// The keys of the chunks of one result.
///
/// ```
/// use rockbot_core::store::StorePath;
/// use rockbot_core::tool::{ChunkKeyForm, ChunkKeys};
///
/// let namespace = StorePath::new("session/abc123")?;
/// let keys = ChunkKeys::new(&namespace, "list_models", "a1b2c3", ChunkKeyForm::Path)?;
/// assert_eq!(keys.chunk(0).as_str(), "session/abc123/tool-list_models-a1b2c3-chunk0");
/// assert_eq!(keys.index().as_str(), "session/abc123/tool-list_models-a1b2c3-index");
/// # Ok::<(), rockbot_core::store::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkKeys {
    /// Everything before `chunk{n}` and `index`.
    stem: String,
    /// How much of a key the model is not shown.
    hidden: usize,
}

impl ChunkKeys {
    /// Keys in `namespace` for what tool `name` returned in `run`, which must differ from call to call.
    ///
    /// Of `name` and `run` 40 characters count; what is no letter, digit, `-` or `_` in them becomes `_`.
    ///
    /// # Errors
    ///
    /// Fails when `namespace` is so long that there is no room for the rest of a key.
    pub fn new(namespace: &StorePath, name: &str, run: &str, form: ChunkKeyForm) -> Result<Self, PathError> {
        let (name, run) = (plain(name), plain(run));
        let (stem, hidden) = match form {
            ChunkKeyForm::Path => (format!("{namespace}/tool-{name}-{run}-"), 0),
            ChunkKeyForm::Colons => (format!("{namespace}/tool:{name}:{run}:"), namespace.as_str().len() + 1),
        };
        StorePath::new(&format!("{stem}chunk{}", usize::MAX))?;
        Ok(Self { stem, hidden })
    }

    /// Where chunk number `index` is kept.
    pub fn chunk(&self, index: usize) -> StorePath {
        self.path(&format!("chunk{index}"))
    }

    /// Where the outline is kept.
    pub fn index(&self) -> StorePath {
        self.path("index")
    }

    fn path(&self, end: &str) -> StorePath {
        StorePath::new(&format!("{}{end}", self.stem)).expect("a longer key was a path")
    }

    /// The beginning of all keys as the model is shown them.
    pub(super) fn shown(&self) -> &str {
        &self.stem[self.hidden..]
    }
}

fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let characters = name.chars().take(NAME_LEN);
    characters.map(|c| if is_plain(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, run: &str, form: ChunkKeyForm, stored: &str, shown: &str) {
        let namespace = StorePath::new("session/a").unwrap();
        let keys = ChunkKeys::new(&namespace, name, run, form).unwrap();
        assert_eq!((keys.chunk(12).as_str(), keys.shown()), (stored, shown));
    }

    #[test]
    fn both_forms() {
        let (path, colons) = (ChunkKeyForm::Path, ChunkKeyForm::Colons);
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
    fn names_that_are_no_segments() {
        let path = ChunkKeyForm::Path;
        check(
            "../ä b|",
            "`",
            path,
            "session/a/tool-___ä_b_-_-chunk12",
            "session/a/tool-___ä_b_-_-",
        );
        let (long, cut) = ("x".repeat(99), "x".repeat(40));
        let stem = format!("session/a/tool-{cut}-{cut}-");
        check(&long, &long, path, &format!("{stem}chunk12"), &stem);
    }

    #[test]
    fn a_namespace_may_be_too_long() {
        let namespace = StorePath::new(&"n".repeat(500)).unwrap();
        assert!(ChunkKeys::new(&namespace, "now", "1", ChunkKeyForm::Path).is_err());
    }
}
