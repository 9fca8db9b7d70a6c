//! Syncs that fail on purpose, for tests of stores.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The paths whose syncs fail, once for each guard.
static FAILING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A guard that makes the syncs of one file or folder fail, in this process, while it lives.
///
/// A disk that cannot confirm a write is rare and hard to provoke, and a store has to report the
/// truth then, too. The sync of a folder fails after the name in it has changed, the sync of a
/// file after its bytes were handed to the system.
///
/// ```
/// use rockbot_core::files::{DataFolder, FileError};
/// use rockbot_core::testing::FailingSyncs;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let root = tempfile::tempdir()?;
/// let folder = DataFolder::open(root.path())?;
/// let failing = FailingSyncs::of(root.path());
/// let written = folder.replace("profile.md", b"likes tea");
/// assert!(matches!(written, Err(FileError::NotDurable { .. })));
/// assert!(folder.find("profile.md")?.is_some(), "visible, but a power failure may undo it");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FailingSyncs(PathBuf);

impl FailingSyncs {
    /// Lets each sync of the file or folder at `path` fail until the guard is dropped.
    pub fn of(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        lock().push(path.clone());
        Self(path)
    }
}

impl Drop for FailingSyncs {
    fn drop(&mut self) {
        let mut failing = lock();
        if let Some(place) = failing.iter().position(|path| *path == self.0) {
            failing.swap_remove(place);
        }
    }
}

/// Returns an error if a guard lets the syncs of `path` fail.
pub(super) fn check(path: &Path) -> io::Result<()> {
    if lock().iter().any(|failing| failing == path) {
        Err(io::Error::other("this sync fails on purpose"))
    } else {
        Ok(())
    }
}

fn lock() -> MutexGuard<'static, Vec<PathBuf>> {
    FAILING.lock().unwrap_or_else(PoisonError::into_inner)
}
