//! Files with descriptors, one by one or in a folder.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::Kind;

/// Maximum size of a descriptor, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// Maximum number of descriptors in a folder.
const MAX_FILES: usize = 1000;

/// A file with a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tool_services) struct DescriptorFile {
    /// The path, for messages.
    pub(in crate::tool_services) place: String,
    /// The kind that the folder says.
    pub(in crate::tool_services) kind: Option<Kind>,
    /// The name of the file without its ending.
    pub(in crate::tool_services) key: String,
    /// The content, or why it cannot be read.
    pub(in crate::tool_services) text: Result<Vec<u8>, String>,
}

impl DescriptorFile {
    /// Reads a file. Links are followed, as the folders of a Kubernetes ConfigMap need.
    pub(in crate::tool_services) fn read(path: &Path, kind: Option<Kind>) -> Self {
        let key = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = read(path).map_err(|error| format!("it cannot be read: {error}"));
        Self {
            place: path.display().to_string(),
            kind,
            key,
            text,
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it is longer than {MAX_BYTES} bytes")));
    }
    Ok(bytes)
}

/// Reads all descriptors of a folder, in the order of their paths.
///
/// # Errors
///
/// Returns an error if the folder cannot be listed, or has more than 1000 descriptors.
pub(in crate::tool_services) fn read_folder(root: &Path) -> io::Result<Vec<DescriptorFile>> {
    let mut files = list(root, None)?;
    for kind in [Kind::Service, Kind::Tool] {
        let folder = root.join(kind.prefix());
        if folder.is_dir() {
            files.extend(list(&folder, Some(kind))?);
        }
    }
    if files.len() > MAX_FILES {
        let message = format!("it has {} descriptors: use at most {MAX_FILES}", files.len());
        return Err(io::Error::other(message));
    }
    files.sort();
    let read = |(path, kind): (PathBuf, Option<Kind>)| DescriptorFile::read(&path, kind);
    Ok(files.into_iter().map(read).collect())
}

fn list(folder: &Path, kind: Option<Kind>) -> io::Result<Vec<(PathBuf, Option<Kind>)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_hidden = path
            .file_name()
            .is_none_or(|name| name.to_string_lossy().starts_with('.'));
        if !is_hidden && path.extension().is_some_and(|ending| ending == "json") {
            found.push((path, kind));
        }
    }
    Ok(found)
}
