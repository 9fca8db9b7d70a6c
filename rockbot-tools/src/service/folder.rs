//! Folders of descriptors: reading them, and putting a descriptor into one.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rockbot_core::files::DataFolder;

use super::catalog::{self, DescriptorFiles, Layer};
use super::descriptor::{Descriptor, DescriptorProblem, Kind};

/// Maximum size of a descriptor, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// Maximum number of descriptors in a folder.
const MAX_FILES: usize = 1000;

/// Maximum length of a descriptor's name in a key, in bytes.
const MAX_NAME: usize = 128;

/// A folder of descriptors: `tool-service/ID.json` and `tool/NAME.json`, as their keys say, or files beside each other,
/// where a tool is what has a `type`. Files with other endings, and names that begin with a dot, are ignored.
///
/// ```
/// use rockbot_tools::service::DescriptorFolder;
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let descriptors = DescriptorFolder::new(folder);
/// descriptors.put("tool-service/calculator", r#"{ "id": "calculator", "topic": "calc" }"#)?;
/// assert!(folder.join("tool-service/calculator.json").exists());
/// assert_eq!(descriptors.problems(), []);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescriptorFolder(PathBuf);

impl DescriptorFolder {
    /// Names a folder. Creates and reads nothing.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes the descriptor of a key, `tool-service/ID` or `tool/NAME`, in place of the one that is there. A descriptor
    /// with a defect is not written. Agents that watch the folder have it at their next look.
    ///
    /// # Errors
    ///
    /// Returns an error if the key or the descriptor is wrong, or the file cannot be written.
    pub fn put(&self, key: &str, json: &str) -> Result<(), DescriptorProblem> {
        let wrong_key = || DescriptorProblem::new(key, "it is no key: write `tool-service/ID` or `tool/NAME`");
        let (kind, name) = key.split_once('/').ok_or_else(wrong_key)?;
        let mut kinds = [Kind::Service, Kind::Tool].into_iter();
        let kind = kinds.find(|known| known.prefix() == kind).ok_or_else(wrong_key)?;
        if !is_file_name(name) {
            return Err(wrong_key());
        }
        Descriptor::parse(key, Some(kind), json.as_bytes())?;
        let file = format!("{}/{name}.json", kind.prefix());
        let written = DataFolder::unheld(&self.0).replace(&file, json.as_bytes());
        written.map_err(|error| DescriptorProblem::new(key, error.to_string()))
    }

    /// Reads all descriptors and returns their defects and hints.
    pub fn problems(&self) -> Vec<DescriptorProblem> {
        let mut files = DescriptorFiles::default();
        match read_folder(&self.0) {
            Ok(read) => drop(files.update(read)),
            Err(error) => return vec![DescriptorProblem::new(&self.0.display().to_string(), error.to_string())],
        }
        catalog::derive(files.layer(), std::iter::empty::<&Layer>()).problems
    }
}

/// Reports whether a name of a key can be the name of a file.
fn is_file_name(name: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && !matches!(c, '/' | '\\' | ':');
    !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('.') && name.chars().all(is_plain)
}

/// A file with a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DescriptorFile {
    /// The path, for messages.
    pub(super) place: String,
    /// The kind that the folder says.
    pub(super) kind: Option<Kind>,
    /// The name of the file without its ending.
    pub(super) key: String,
    /// The content, or why it cannot be read.
    pub(super) text: Result<Vec<u8>, String>,
}

impl DescriptorFile {
    /// Reads a file. Links are followed, as the folders of a Kubernetes ConfigMap need.
    pub(super) fn read(path: &Path, kind: Option<Kind>) -> Self {
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
pub(super) fn read_folder(root: &Path) -> io::Result<Vec<DescriptorFile>> {
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
