//! Finds the skills in a folder.

use std::io;
use std::path::Path;

/// Maximum depth of the search.
const MAX_DEPTH: usize = 6;
/// Maximum number of files and links.
const MAX_FILES: usize = 20_000;

/// The file that makes a folder a skill.
pub(super) const FILE: &str = "SKILL.md";

/// The plain files and the links in a folder by their relative names, sorted.
#[derive(Debug, Default)]
pub(super) struct FoundFiles {
    pub(super) files: Vec<String>,
    pub(super) links: Vec<String>,
}

impl FoundFiles {
    /// Searches a folder, without hidden folders and folders of package managers. No link is
    /// followed. Names with control characters, such as line ends, are left out: models are shown the
    /// names in one line.
    pub(super) fn in_folder(folder: &Path) -> io::Result<Self> {
        let mut found = Self::default();
        found.walk(folder, "", MAX_DEPTH)?;
        found.files.sort_unstable();
        found.links.sort_unstable();
        Ok(found)
    }

    fn walk(&mut self, folder: &Path, prefix: &str, depth: usize) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let is_hidden = name.starts_with('.') || name == "node_modules" || name.contains(char::is_control);
            if is_hidden || self.files.len() + self.links.len() == MAX_FILES {
                continue;
            }
            let kind = entry.file_type()?;
            let path = format!("{prefix}{name}");
            if kind.is_symlink() {
                self.links.push(path);
            } else if kind.is_file() {
                self.files.push(path);
            } else if kind.is_dir() && depth > 0 {
                // An unreadable folder must not hide the others.
                let _ = self.walk(&entry.path(), &format!("{path}/"), depth - 1);
            }
        }
        Ok(())
    }

    /// Returns the folders of skills, with a trailing slash, and the files in each beside its
    /// `SKILL.md`. Everything below a skill's folder belongs to that skill. An empty name is the
    /// folder itself.
    pub(super) fn skills(&self) -> Vec<(&str, Vec<String>)> {
        let folders = self.files.iter().filter_map(|file| file.strip_suffix(FILE));
        let mut folders: Vec<_> = folders
            .filter(|folder| folder.is_empty() || folder.ends_with('/'))
            .collect();
        // Sorted by bytes, a folder is directly followed by its content.
        folders.sort_unstable();
        folders.dedup_by(|folder, above| folder.starts_with(*above));
        let with_files = |folder: &'_ str| {
            let files = self.files.iter().filter_map(|file| file.strip_prefix(folder));
            files.filter(|file| *file != FILE).map(str::to_owned).collect()
        };
        folders.into_iter().map(|folder| (folder, with_files(folder))).collect()
    }
}
