//! The kit for implementers of stores in files: names, locks, atomic replacement, append-only
//! lines.
//!
//! For authors of stores, behind the feature `files`; users of the bundled stores need none of
//! it. To write a store in files:
//!
//! 1. Open a [`DataFolder`]: it locks the folder for this process and follows no link inside of it.
//! 2. Name files by [`encode`] for ids, and by [`name_of`] for the folder of a principal.
//! 3. Keep a document that changes as a whole with [`DataFolder::replace`] (atomic, synced), and
//!    records that are only added with [`DataFolder::lines`] (one write per append, torn lines
//!    are closed).
//! 4. When the store is opened, remove the unfinished replacements of killed processes with
//!    [`DataFolder::remove_drafts`].
//! 5. Quarantine a file whose [error is damage](FileError::is_damage) with
//!    [`DataFolder::quarantine`], and go on.
//! 6. Report errors as [`StoreError::caused_by`](crate::store::StoreError::caused_by): the kind
//!    follows from the [`FileError`]. Run the suite of `testing::conformance` for the trait.
//!
//! A store that is a single file takes a [`FileLock`] and opens it with [`plain_file`];
//! [`decode`] and [`owner_of`] invert [`encode`] and [`name_of`]; [`LineFile`] is an open file of
//! lines. All operations block: on a local disk for microseconds, except where a sync is
//! documented. Run operations that sync on a thread that may block.
//!
//! ```
//! use rockbot_core::Principal;
//! use rockbot_core::files::{DataFolder, name_of};
//! use rockbot_core::store::{StoreError, StoreErrorKind};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let root = tempfile::tempdir()?;
//! let folder = DataFolder::open(root.path())?;
//! let name = name_of(&Principal::from("ann"), "profile.md")?;
//! folder.replace(&name, b"likes tea")?;
//! assert_eq!(folder.read(&name, 1024)?.as_deref(), Some(&b"likes tea"[..]));
//!
//! // The folder is locked until it is dropped.
//! let error = DataFolder::open(root.path()).map_err(|error| StoreError::caused_by("notes cannot be opened", error));
//! assert_eq!(error.unwrap_err().kind(), StoreErrorKind::Locked);
//! # Ok(())
//! # }
//! ```

mod atomic_write;
mod error;
#[cfg(any(test, feature = "testing"))]
mod faults;
mod folder;
mod lines;
mod lock;
mod name;
mod no_follow;
mod principal_dir;
mod sync;
mod system;
#[cfg(test)]
mod tests;

pub use atomic_write::Draft;
pub use error::FileError;
#[cfg(any(test, feature = "testing"))]
pub use faults::FailingSyncs;
pub use folder::{DataFolder, FileEntry};
pub use lines::{FileHandle, LineFile, without_bom};
pub use lock::{FileLock, plain_file};
pub use name::{IdTooLong, MAX_ID_BYTES, decode, encode};
pub use principal_dir::{folder_of, name_of, owner_of};
