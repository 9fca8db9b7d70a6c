//! A folder of descriptors, for the programs that fill it.

use std::path::{Path, PathBuf};

use rockbot_core::files::DataFolder;

use super::catalog::{self, DescriptorFiles, Layer};
use super::descriptor::{Descriptor, DescriptorProblem, Kind, read_folder};

/// Maximum length of a descriptor's name in a key, in bytes.
const MAX_NAME: usize = 128;

/// A folder of descriptors: `tool-service/ID.json` and `tool/NAME.json`, as their keys say, or
/// files beside each other; a descriptor with a `type` is a tool. Files with other endings, and
/// names that begin with a dot, are ignored.
///
/// ```
/// use rockbot_remote::tool_services::DescriptorFolder;
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

    /// Writes the descriptor of a key, `tool-service/ID` or `tool/NAME`, in place of the present one,
    /// and creates the folder if it is missing. A descriptor with a defect is not written. Agents
    /// that watch the folder have it at their next look.
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
        let refused = |error: &dyn std::fmt::Display| DescriptorProblem::new(key, error.to_string());
        std::fs::create_dir_all(&self.0).map_err(|error| {
            let folder = self.0.display();
            refused(&format_args!("`{folder}` cannot be made: {error}"))
        })?;
        let written = DataFolder::unheld(&self.0).replace(&file, json.as_bytes());
        written.map_err(|error| refused(&error))
    }

    /// Reads all descriptors and returns their defects and hints.
    pub fn problems(&self) -> Vec<DescriptorProblem> {
        let mut files = DescriptorFiles::default();
        match read_folder(&self.0) {
            Ok(read) => drop(files.update(read)),
            Err(error) => return vec![DescriptorProblem::new(&self.0.display().to_string(), error.to_string())],
        }
        catalog::derive(files.layer(), &std::iter::empty::<&Layer>()).problems
    }
}

/// Reports whether a name of a key can be the name of a file.
fn is_file_name(name: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && !matches!(c, '/' | '\\' | ':');
    !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('.') && name.chars().all(is_plain)
}
