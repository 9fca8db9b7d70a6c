//! Where work keeps its notes, and what a key means that a model wrote.

use super::{PathError, StorePath};
use crate::{CallContext, Digest, SessionId};

/// The part of working memory in which some work keeps its notes, such as `session/abc`.
///
/// The one place that says what a key means: with a `/` in it a key is a whole path, without one it belongs to the
/// namespace.
///
/// ```
/// use rockbot_core::store::Namespace;
///
/// let namespace = Namespace::of_session(&"abc".into());
/// assert_eq!(namespace.resolve("notes")?.as_str(), "session/abc/notes");
/// assert_eq!(namespace.resolve("shared/notes")?.as_str(), "shared/notes");
/// # Ok::<(), rockbot_core::store::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace(StorePath);

/// What may be done with entries of working memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Nothing.
    None,
    /// They may be read and deleted.
    Take,
    /// They may be written, too.
    Full,
}

/// The longest session id that stands in a path as it is, in bytes.
const MAX_SESSION: usize = 128;

impl Namespace {
    /// The namespace below `path`.
    pub fn new(path: StorePath) -> Self {
        Self(path)
    }

    /// `session/{id}`. An id that is no segment of a path, or begins with `~`, is named by its digest: `session/~{digest}`.
    pub fn of_session(session: &SessionId) -> Self {
        let id = session.as_str();
        let is_segment = id.len() <= MAX_SESSION && !id.contains('/') && !id.starts_with('~');
        let named = is_segment
            .then(|| StorePath::new(&format!("session/{id}")).ok())
            .flatten();
        let digest = || StorePath::new(&format!("session/~{}", Digest::of([id]).short()));
        Self(named.unwrap_or_else(|| digest().expect("a digest is a segment")))
    }

    /// Where the work of `cx` keeps its notes: in the namespace that was attached to it with
    /// [`CallContext::with_extension`], else in that of its session.
    pub fn of(cx: &CallContext) -> Self {
        let attached = cx.extension::<Self>().cloned();
        attached.unwrap_or_else(|| Self::of_session(cx.session()))
    }

    /// The path of the namespace.
    pub fn path(&self) -> &StorePath {
        &self.0
    }

    /// What the work of `cx` may do with what is kept under `path`.
    ///
    /// Everything with what is its own, which is its [namespace](Self::of), that of its session and what was taken out of
    /// their conversations (`stash/…`), and with what lies in `shared/…`. Nothing with what belongs to another session. All
    /// other namespaces belong to work of the same person, such as `patrol/…` and `subagent/…`, and are there to hand over
    /// findings: they can be read and cleared away.
    pub fn access(cx: &CallContext, path: &StorePath) -> Access {
        let own = [Self::of(cx), Self::of_session(cx.session())];
        if own.iter().any(|own| own.owns(path)) {
            return Access::Full;
        }
        match path.segments().next() {
            Some("shared") => Access::Full,
            Some("session" | "stash") => Access::None,
            _ => Access::Take,
        }
    }

    fn owns(&self, path: &StorePath) -> bool {
        let stashed = path.as_str().strip_prefix("stash/");
        let own = self.0.as_str();
        let own_stash = own.strip_prefix("session/").unwrap_or(own);
        let is_stashed = stashed.and_then(|rest| rest.strip_prefix(own_stash));
        path.is_within(&self.0) || is_stashed.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The path that `key` means.
    ///
    /// # Errors
    ///
    /// Fails when that is no path.
    pub fn resolve(&self, key: &str) -> Result<StorePath, PathError> {
        if key.contains('/') {
            StorePath::new(key)
        } else {
            StorePath::new(&format!("{}/{key}", self.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_names_its_namespace_whatever_its_id_is() {
        let path = |id: &str| Namespace::of_session(&id.into()).path().as_str().to_owned();
        assert_eq!(path("a b:1"), "session/a b:1");
        for id in ["", "a/b", "..", "~a", " a", "a\n", &"x".repeat(129)] {
            assert_eq!(path(id), format!("session/~{}", Digest::of([id]).short()), "{id:?}");
        }
    }

    #[test]
    fn work_reaches_its_own_what_is_shared_and_what_others_hand_over() {
        let patrol = Namespace::new(StorePath::new("patrol/mail").unwrap());
        let cx = CallContext::new("1").with_extension(patrol);
        for (path, expected) in [
            ("session/1", Access::Full),
            ("session/1/notes/a", Access::Full),
            ("patrol/mail/a", Access::Full),
            ("stash/1/call", Access::Full),
            ("stash/patrol/mail/call", Access::Full),
            ("shared/a", Access::Full),
            ("session/10/a", Access::None),
            ("session", Access::None),
            ("stash/10/call", Access::None),
            ("patrol/mailbox/a", Access::Take),
            ("subagent/7/result", Access::Take),
        ] {
            assert_eq!(
                Namespace::access(&cx, &StorePath::new(path).unwrap()),
                expected,
                "{path}"
            );
        }
    }

    #[test]
    fn an_attached_namespace_goes_before_the_session() {
        let cx = CallContext::new("a");
        let patrol = Namespace::new(StorePath::new("patrol/mail").unwrap());
        assert_eq!(Namespace::of(&cx), Namespace::of_session(&"a".into()));
        assert_eq!(Namespace::of(&cx.with_extension(patrol.clone())), patrol);
        assert!(patrol.resolve("").is_err());
        assert!(patrol.resolve("../x").is_err());
    }
}
