//! What differs between operating systems. What is not Unix is untried.
//!
//! Files and folders that are made here can only be read by their owner, since they hold conversations. Those that are
//! there keep their permissions.

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

    /// Makes new names in a folder survive power loss.
    pub(in crate::files) fn sync_folder(path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

#[cfg(not(unix))]
mod portable {
    use std::fs::{DirBuilder, Metadata, OpenOptions};
    use std::io;
    use std::path::Path;

    /// A file has the permissions of its folder.
    pub(in crate::files) fn open_options() -> OpenOptions {
        OpenOptions::new()
    }

    pub(in crate::files) fn make_folder(path: &Path, with_parents: bool) -> io::Result<()> {
        DirBuilder::new().recursive(with_parents).create(path)
    }

    /// Nothing tells files apart, so a link that is planted between look and use is not seen.
    pub(in crate::files) fn is_same_file(_: &Metadata, _: &Metadata) -> bool {
        true
    }

    /// A folder cannot be synced.
    pub(in crate::files) fn sync_folder(_: &Path) -> io::Result<()> {
        Ok(())
    }
}
