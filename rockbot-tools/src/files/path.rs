//! Paths of an agent's files: relative, with slashes, and without a way out.

use std::fmt;

use rockbot_core::Digest;

/// Maximum length of a path, in bytes.
const MAX_PATH: usize = 1_024;

/// Maximum length of a name, in bytes.
const MAX_NAME: usize = 200;

/// Maximum number of folders in a path.
const MAX_DEPTH: usize = 32;

/// The folder of the host: the previous versions of files, and files that are being written.
pub(super) const BACKUPS: &str = ".prev";

/// The beginning of the names of files that are being written. No previous version has such a name.
pub(super) const DRAFT: &str = "%draft-";

/// Length of the name of a previous version, in bytes, after a name that is too long was cut.
const CUT_NAME: usize = 120;

/// A path below the folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FilePath(String);

/// The reason why a text is no path.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{shown}` is not a path here: {reason}")]
pub(super) struct PathError {
    shown: String,
    reason: &'static str,
}

impl FilePath {
    /// Parses the path of a file.
    pub(super) fn parse(text: &str) -> Result<Self, PathError> {
        let wrong = |reason| PathError {
            shown: text.chars().take(100).collect(),
            reason,
        };
        let trimmed = text.trim();
        if trimmed.starts_with('/') || trimmed.get(1..2) == Some(":") {
            return Err(wrong("give it relative to the folder, such as `notes/today.md`"));
        }
        if trimmed.contains('\\') || trimmed.chars().any(char::is_control) {
            return Err(wrong("use slashes between names, and no control characters"));
        }
        let names: Vec<&str> = trimmed.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
        if names.contains(&"..") {
            return Err(wrong("it must not lead out of its folder"));
        }
        let is_long =
            trimmed.len() > MAX_PATH || names.len() > MAX_DEPTH || names.iter().any(|name| name.len() > MAX_NAME);
        if names.is_empty() || is_long {
            return Err(wrong("it is empty or too long"));
        }
        Ok(Self(names.join("/")))
    }

    /// Parses the path of a file that is to change, which must not be a previous version.
    pub(super) fn of_change(text: &str) -> Result<Self, PathError> {
        let path = Self::parse(text)?;
        if path.is_backup() {
            Err(PathError {
                shown: path.0,
                reason: "previous versions can be read, and not changed",
            })
        } else {
            Ok(path)
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the last name.
    pub(super) fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// Returns the folder, or `None` for a file that stands in none.
    pub(super) fn folder(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(folder, _)| folder)
    }

    /// Returns the path of the previous version: one name, since a file may stand where a folder was.
    pub(super) fn backup(&self) -> Self {
        let mut name = self.0.replace('%', "%25").replace('/', "%2F");
        if name.len() > MAX_NAME {
            name.truncate(name.floor_char_boundary(CUT_NAME));
            name = format!("{name}%-{}", Digest::of([&self.0]));
        }
        Self(format!("{BACKUPS}/{name}"))
    }

    pub(super) fn is_backup(&self) -> bool {
        self.0.split('/').next() == Some(BACKUPS)
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_folder() {
        for (text, path) in [
            ("a.md", "a.md"),
            ("./a//b.md", "a/b.md"),
            (" a/b c ", "a/b c"),
            ("..a/b..", "..a/b.."),
            (".draft-1", ".draft-1"),
        ] {
            assert_eq!(FilePath::parse(text).map(|path| path.to_string()), Ok(path.to_owned()));
        }
        let long = "a".repeat(300);
        for text in [
            "",
            ".",
            "/",
            "/etc/passwd",
            "..",
            "a/../b",
            "../a",
            "a\\b",
            "C:\\a",
            "c:/a",
            "a\0b",
            "a\nb",
            &long,
        ] {
            assert!(FilePath::parse(text).is_err(), "{text:?}");
        }
        assert!(FilePath::of_change(".prev/a").is_err() && FilePath::parse(".prev/a").is_ok());
    }

    #[test]
    fn each_path_has_a_previous_version_of_its_own() {
        let long = |last: &str| format!("{}{last}", "ß%/".repeat(30));
        let backups = ["a/b", "a%2Fb", "a%b", "%draft-1", &long("a"), &long("b")].map(|path| {
            let backup = FilePath::parse(path).unwrap().backup();
            FilePath::parse(backup.as_str()).unwrap().to_string()
        });
        let short = [".prev/a%2Fb", ".prev/a%252Fb", ".prev/a%25b", ".prev/%25draft-1"];
        assert_eq!(backups[..4], short);
        assert_ne!(backups[4], backups[5]);
    }
}
