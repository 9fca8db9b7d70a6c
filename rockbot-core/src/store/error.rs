//! The error of all stores: what failed, of which kind, and why.

use std::fmt;
use std::io;

use crate::BoxError;

/// The error of a store that cannot be read or written.
///
/// Callers decide by [`kind`](Self::kind), never by the printed text. The context states what was tried and, where the
/// user can do something about it, what to do. The [cause](Self::cause) is the error of the system below: of the file
/// system, of the database, of the serializer. Both are printed, `context: cause`, so the
/// [source](std::error::Error::source) is the cause's own.
///
/// # Examples
///
/// An implementation of a store reports an error of its own with a kind that it chooses, and an error of the system
/// below with the kind that follows from it:
///
/// ```
/// use std::io;
/// use rockbot_core::store::{StoreError, StoreErrorKind};
///
/// let closed = StoreError::new(StoreErrorKind::Closed, "the store is closed; open it again");
/// assert_eq!(closed.kind(), StoreErrorKind::Closed);
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

/// The kind of a [`StoreError`]: what callers decide by.
///
/// The kind of an `std::io::Error`, and of the errors of the bundled stores, follows by `StoreErrorKind::from(&error)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Other writers changed the entry each time that this one tried to. The same call may succeed when it is repeated.
    Conflict,
    /// Another process, or another value in this one, has the store open.
    Locked,
    /// The store is closed, or the task or thread that serves it has ended.
    Closed,
    /// The stored data cannot be understood: it is damaged, or another program or a newer version wrote it.
    Damaged,
    /// There is no room: the disk, or a quota of the store, is full.
    Full,
    /// The caller's input cannot be stored: it is too large, has an id without a file name, or does not serialize.
    Invalid,
    /// The change was made and is visible, but the disk could not confirm it: a power failure may undo it.
    NotDurable,
    /// The operating system, or the database below the store, refused an operation.
    Io,
}

impl StoreError {
    /// Creates an error of `kind`, where `context` states what was tried and what to do.
    pub fn new(kind: StoreErrorKind, context: impl Into<String>) -> Self {
        Self {
            kind,
            context: context.into(),
            cause: None,
        }
    }

    /// Creates an error whose kind follows from its `cause`.
    ///
    /// A store with an error type of its own implements `From<&ItsError> for StoreErrorKind` to use this.
    pub fn caused_by<E>(context: impl Into<String>, cause: E) -> Self
    where
        E: Into<BoxError>,
        for<'e> StoreErrorKind: From<&'e E>,
    {
        Self::new(StoreErrorKind::from(&cause), context).with_cause(cause)
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

    /// Returns the text that states what was tried and what to do, without the cause.
    pub fn context(&self) -> &str {
        &self.context
    }

    /// Returns the error of the system below, for callers that know its type.
    pub fn cause(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.cause.as_deref()
    }

    /// Returns `true` if the same call may succeed when it is repeated at once, with nothing else done.
    ///
    /// That is so for [`StoreErrorKind::Conflict`] alone: all other kinds last until the user, the operator or another
    /// process has acted.
    pub fn retry_helps(&self) -> bool {
        self.kind == StoreErrorKind::Conflict
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
            _ => Self::Io,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

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
}
