//! Files that only their owner can read, since they hold conversations. It decides about new files; those that are
//! there keep their permissions, as does the folder.

use std::fs::OpenOptions;

/// Options to open a file with.
#[cfg(unix)]
pub(super) fn options() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;

    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Options to open a file with. On this system a file has the permissions of its folder.
#[cfg(not(unix))]
pub(super) fn options() -> OpenOptions {
    OpenOptions::new()
}
