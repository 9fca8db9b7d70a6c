//! What stores in files have in common: names for untrusted ids, a folder that one process holds, documents that are
//! replaced whole, and files of lines that only grow.
//!
//! * [`encode`] and [`decode`]: an id as a file name, on every file system
//! * [`DataFolder`]: reads, replaces, lists, removes and sets aside the documents of a folder, and never follows a link
//! * [`LineFile`]: appends whole lines
//! * [`FileLock`] and [`plain_file`]: for stores that are one file
//! * [`name_of`] and [`owner_of`]: whose a file is
//!
//! Everything here blocks: on a local disk that is microseconds, except where a sync is documented.

mod atomic_write;
mod error;
mod folder;
mod lines;
mod lock;
mod name;
mod no_follow;
mod principal_dir;
mod system;
#[cfg(test)]
mod tests;

pub use atomic_write::Draft;
pub use error::FileError;
pub use folder::{DataFolder, Found};
pub use lines::{LineFile, without_bom};
pub use lock::{FileLock, plain_file};
pub use name::{IdTooLong, MAX_ID_BYTES, decode, encode};
pub use principal_dir::{folder_of, name_of, owner_of};
