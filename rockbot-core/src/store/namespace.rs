//! Namespaces of working memory, and the resolution of keys that a model wrote.

use super::{PathError, StorePath};
use crate::{CallContext, Digest, SessionId};

/// The part of working memory that belongs to some work, such as `session/abc`.
///
/// Resolves keys: a key with a `/` is a whole path, a key without one belongs to the namespace.
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

/// The access that some work has to entries of working memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// No access.
    None,
    /// Read and delete.
    Take,
    /// Read, delete and write.
    Full,
}

/// Maximum length of a session id that appears in a path unchanged, in bytes.
const MAX_SESSION: usize = 128;

impl Namespace {
    /// Creates the namespace below `path`.
    pub fn new(path: StorePath) -> Self {
        Self(path)
    }

    /// Returns the namespace of a session, `session/{id}`. An id that is not a valid segment, or
    /// begins with `~`, is replaced by its digest: `session/~{digest}`.
    pub fn of_session(session: &SessionId) -> Self {
        let id = session.as_str();
        let is_segment = id.len() <= MAX_SESSION && !id.contains('/') && !id.starts_with('~');
        let named = is_segment
            .then(|| StorePath::new(&format!("session/{id}")).ok())
            .flatten();
        let digest = || StorePath::new(&format!("session/~{}", Digest::of([id]).short()));
        Self(named.unwrap_or_else(|| digest().expect("a digest is a segment")))
    }

    /// Returns the namespace of the work of `cx`: the namespace attached with
    /// [`CallContext::with_extension`], else the namespace of its session.
    pub fn of(cx: &CallContext) -> Self {
        let attached = cx.extension::<Self>().cloned();
        attached.unwrap_or_else(|| Self::of_session(cx.session()))
    }

    /// Returns the path of the namespace.
    pub fn path(&self) -> &StorePath {
        &self.0
    }

    /// Returns the access that the work of `cx` has to entries under `path`.
    ///
    /// Full access to its own [namespace](Self::of), the namespace of its session, the messages
    /// offloaded from their conversations (`stash/…`) and `shared/…`. No access to the entries of
    /// another session. All other namespaces, such as `patrol/…` and `subagent/…`, belong to work
    /// of the same person and hand over findings: their entries can be read and deleted.
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

    /// Resolves `key` to a path.
    ///
    /// # Errors
    ///
    /// Returns an error if the result is not a valid path.
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
