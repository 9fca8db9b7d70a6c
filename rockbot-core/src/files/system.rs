//! Operations that differ between operating systems. Untested outside of Unix.
//!
//! Files and folders created here are readable by their owner only, since they hold
//! conversations. Existing files and folders keep their permissions.

#[cfg(unix)]
pub(super) use unix::{is_same_file, make_folder, open_options, sync_folder};

#[cfg(not(unix))]
pub(super) use portable::{is_same_file, make_folder, open_options, sync_folder};

#[cfg(unix)]
mod unix {
    use std::fs::{DirBuilder, File, Metadata, OpenOptions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
    use std::path::Path;

    pub(in crate::files) fn open_options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.mode(0o600);
        options
    }

    pub(in crate::files) fn make_folder(path: &Path, with_parents: bool) -> io::Result<()> {
        DirBuilder::new().mode(0o700).recursive(with_parents).create(path)
    }

    pub(in crate::files) fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    }

    /// Syncs a folder, so that names created or renamed in it survive a power loss: syncing the file
    /// alone syncs its contents only.
    pub(in crate::files) fn sync_folder(path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

#[cfg(not(unix))]
mod portable {
    use std::fs::{DirBuilder, Metadata, OpenOptions};
    use std::io;
    use std::path::Path;

    /// Returns plain options: a file has the permissions of its folder.
    pub(in crate::files) fn open_options() -> OpenOptions {
        OpenOptions::new()
    }

    pub(in crate::files) fn make_folder(path: &Path, with_parents: bool) -> io::Result<()> {
        DirBuilder::new().recursive(with_parents).create(path)
    }

    /// Returns `true` always: the system has no file number, so a link planted between check and open
    /// is not detected.
    pub(in crate::files) fn is_same_file(_: &Metadata, _: &Metadata) -> bool {
        true
    }

    /// Does nothing: the system cannot sync a folder.
    pub(in crate::files) fn sync_folder(_: &Path) -> io::Result<()> {
        Ok(())
    }
}
