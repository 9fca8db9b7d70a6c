//! The error of all stores: the failed operation, the kind of failure, and its cause.

use std::error::Error;
use std::fmt;
use std::io;
use std::iter::successors;

use crate::BoxError;
#[cfg(feature = "files")]
use crate::files::{FileError, IdTooLong};

/// Maximum number of sources of an error that are searched for its kind.
const MAX_SOURCES: usize = 16;

/// The error of a store that cannot be read or written.
///
/// Callers decide by [`kind`](Self::kind), never by the printed text. The context states the
/// failed operation and, where the user can do something about it, the remedy. The
/// [cause](Self::cause) is the error of the system below: of the file system, of the database, of
/// the serializer. Both are printed, `context: cause`, so the [source](std::error::Error::source)
/// is the cause's own.
///
/// # Examples
///
/// An implementation of a store reports an error of its own, or of a database whose errors it can
/// tell apart, with a kind that it chooses. For any other error of the system below, the kind
/// follows from the error:
///
/// ```
/// use std::io;
/// use rockbot_core::store::{StoreError, StoreErrorKind};
///
/// let closed = StoreError::new(StoreErrorKind::Closed, "the store is closed; open it again");
/// assert_eq!(closed.kind(), StoreErrorKind::Closed);
///
/// let deadlock = "deadlock detected";
/// let passing = StoreError::new(StoreErrorKind::Unavailable, "a memory cannot be written").with_cause(deadlock);
/// assert!(passing.retry_helps());
///
/// let full = StoreError::caused_by("a memory cannot be written", io::Error::from(io::ErrorKind::StorageFull));
/// assert_eq!(full.kind(), StoreErrorKind::Full);
/// assert!(!full.retry_helps());
/// ```
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    context: String,
    cause: Option<BoxError>,
}

/// The kind of a [`StoreError`]; callers decide by it.
///
/// The kind of an `std::io::Error`, and of the errors of the bundled stores, follows by
/// `StoreErrorKind::from(&error)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Other writers changed the entry each time that this writer tried to. The same call may
    /// succeed when it is repeated.
    Conflict,
    /// Another process, or another value in this process, has the store open.
    Locked,
    /// The store is closed, or the task or thread that serves it has ended.
    Closed,
    /// The stored data cannot be understood: it is damaged, or another program or a newer version
    /// wrote it.
    Damaged,
    /// There is no room: the disk, or a quota of the store, is full.
    Full,
    /// The caller's input cannot be stored: it is too large, has an id without a file name, or does
    /// not serialize.
    Invalid,
    /// The change was made and is visible, but the disk could not confirm it: a power failure may
    /// undo it.
    NotDurable,
    /// The system below the store cannot serve the call now, and may a little later: a connection
    /// that broke or cannot be made, a time-out, a deadlock, a database that is busy or changes its
    /// leader.
    Unavailable,
    /// The operating system, or the database below the store, refused an operation for another
    /// reason.
    Io,
}

impl StoreError {
    /// Creates an error of `kind`, where `context` states the failed operation and the remedy.
    pub fn new(kind: StoreErrorKind, context: impl Into<String>) -> Self {
        Self {
            kind,
            context: context.into(),
            cause: None,
        }
    }

    /// Creates an error whose kind follows from its `cause`, which may be of any type: the kind is
    /// the kind of the first [`StoreError`], file error or `std::io::Error` among the cause and its
    /// sources, else [`StoreErrorKind::Io`].
    ///
    /// A database's own error rarely has such a source. A store that can tell its passing errors
    /// from the others chooses the kind itself, with [`new`](Self::new) and
    /// [`with_cause`](Self::with_cause).
    pub fn caused_by(context: impl Into<String>, cause: impl Into<BoxError>) -> Self {
        let cause = cause.into();
        Self::new(kind_of(&*cause), context).with_cause(cause)
    }

    /// Sets the error of the system below.
    #[must_use]
    pub fn with_cause(mut self, cause: impl Into<BoxError>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Returns the text that states the failed operation and the remedy, without the cause.
    pub fn context(&self) -> &str {
        &self.context
    }

    /// Returns the error of the system below, for callers that know its type.
    pub fn cause(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.cause.as_deref()
    }

    /// Returns `true` if the same call may succeed when it is repeated, with nothing else done: at
    /// once after a [`StoreErrorKind::Conflict`], a little later after
    /// [`StoreErrorKind::Unavailable`].
    ///
    /// All other kinds last until the user, the operator or another process has acted.
    pub fn retry_helps(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Conflict | StoreErrorKind::Unavailable)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.context)?;
        match &self.cause {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref()?.source()
    }
}

impl From<&io::Error> for StoreErrorKind {
    fn from(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            io::ErrorKind::InvalidData => Self::Damaged,
            io::ErrorKind::Interrupted
            | io::ErrorKind::TimedOut
            | io::ErrorKind::WouldBlock
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset => Self::Unavailable,
            _ => Self::Io,
        }
    }
}

#[cfg(feature = "files")]
impl From<&FileError> for StoreErrorKind {
    fn from(error: &FileError) -> Self {
        match error {
            FileError::Io { cause, .. } => Self::from(cause),
            FileError::Locked(_) => Self::Locked,
            FileError::NotDurable { .. } => Self::NotDurable,
            FileError::NotPlain(_) | FileError::TooLarge { .. } => Self::Damaged,
        }
    }
}

/// Returns the kind of the first error with a known one among `cause` and its sources.
fn kind_of(cause: &(dyn Error + Send + Sync + 'static)) -> StoreErrorKind {
    let cause: &(dyn Error + 'static) = cause;
    // Bounded, since an error of the program's own may be its own source.
    let mut chain = successors(Some(cause), |error| (*error).source()).take(MAX_SOURCES);
    chain.find_map(known_kind).unwrap_or(StoreErrorKind::Io)
}

fn known_kind(error: &(dyn Error + 'static)) -> Option<StoreErrorKind> {
    #[cfg(feature = "files")]
    if let Some(error) = error.downcast_ref::<FileError>() {
        return Some(error.into());
    }
    #[cfg(feature = "files")]
    if error.is::<IdTooLong>() {
        return Some(StoreErrorKind::Invalid);
    }
    let store = error.downcast_ref().map(StoreError::kind);
    store.or_else(|| error.downcast_ref::<io::Error>().map(StoreErrorKind::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_its_context_and_its_cause_once() {
        let plain = StoreError::new(StoreErrorKind::Conflict, "try again");
        assert_eq!(plain.to_string(), "try again");
        assert!(plain.retry_helps() && plain.cause().is_none());
        let caused = StoreError::caused_by("the log cannot be written", io::Error::other("no disk"));
        assert_eq!(caused.to_string(), "the log cannot be written: no disk");
        assert_eq!(
            (caused.kind(), caused.context()),
            (StoreErrorKind::Io, "the log cannot be written")
        );
        assert!(caused.cause().is_some_and(|cause| cause.is::<io::Error>()));
        assert!(caused.source().is_none(), "a chain would print it twice");
    }

    /// The error of a driver, which the program can neither name nor give a trait of this crate.
    #[derive(Debug, thiserror::Error)]
    #[error("the query failed")]
    struct QueryFailed(#[source] io::Error);

    #[test]
    fn the_kind_of_a_foreign_error_follows_from_its_sources() {
        let lost = QueryFailed(io::Error::from(io::ErrorKind::ConnectionReset));
        let error = StoreError::caused_by("a memory cannot be read", lost);
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        assert_eq!(error.to_string(), "a memory cannot be read: the query failed");
        assert!(error.retry_helps() && error.cause().is_some_and(|cause| cause.is::<QueryFailed>()));

        let unknown = StoreError::caused_by("a memory cannot be read", "no such table");
        assert_eq!((unknown.kind(), unknown.retry_helps()), (StoreErrorKind::Io, false));
        #[cfg(feature = "files")]
        assert_eq!(
            StoreError::caused_by("a note cannot be written", FileError::Locked("notes".into())).kind(),
            StoreErrorKind::Locked
        );
        let nested = StoreError::caused_by(
            "a page cannot be read",
            StoreError::new(StoreErrorKind::Closed, "closed"),
        );
        assert_eq!(nested.kind(), StoreErrorKind::Closed);
    }
}
