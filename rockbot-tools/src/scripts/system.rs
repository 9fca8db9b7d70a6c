//! The user of this process, and the programs of the machine.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The user that scripts of root run as, who owns nothing. The system limits no processes of
/// root, and lets root change its settings even from a sandbox.
pub(super) const UNPRIVILEGED: u32 = 65_534;

/// Returns `true` if this process is root's.
pub(super) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Returns the program of this name in the folders of `path`.
pub(super) fn find(program: &str, path: &OsStr) -> Option<PathBuf> {
    let mut candidates = std::env::split_paths(path).map(|folder| folder.join(program));
    candidates.find(|candidate| candidate.is_file())
}
