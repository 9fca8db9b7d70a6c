//! The folder of an agent's files: one directory handle, below which everything happens.

use std::io::{self, Read, Write};
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use rockbot_core::{Digest, IdSource, RandomIds};

use super::path::{BACKUPS, DRAFT, FilePath};

/// Maximum size of a file, in bytes.
pub(super) const MAX_FILE: usize = 4 << 20;

/// Maximum number of files in a list.
pub(super) const MAX_LISTED: usize = 1_000;

/// Maximum number of entries of folders that a list looks at.
const MAX_VISITED: usize = 20_000;

/// A folder. The operating system resolves every path below its handle, so neither a link nor a folder that is moved while
/// it is used leads out of it.
#[derive(Debug)]
pub(super) struct Folder {
    dir: Dir,
}

/// The bytes of a file.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) bytes: Vec<u8>,
    pub(super) digest: Digest,
}

/// A file in a list.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Listed {
    pub(super) path: String,
    pub(super) size: u64,
}

impl Version {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        let digest = Digest::of([&bytes]);
        Self { bytes, digest }
    }
}

impl Folder {
    /// Opens the folder, which is created if it is missing, and removes what a killed process left of its writes.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        let folder = Self {
            dir: Dir::open_ambient_dir(path, ambient_authority())?,
        };
        folder.remove_drafts()?;
        Ok(folder)
    }

    /// Returns the content of a file, or `None` if there is none.
    pub(super) fn read(&self, path: &FilePath) -> io::Result<Option<Version>> {
        // Asked before it is opened: opening a pipe would wait for its other end.
        let is_file = match self.dir.metadata(path.as_str()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            metadata => metadata?.is_file(),
        };
        if !is_file {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is not a file"));
        }
        let file = self.dir.open(path.as_str())?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > MAX_FILE {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than 4 MiB"));
        }
        Ok(Some(Version::of(bytes)))
    }

    /// Replaces the content of a file, atomically: a crash leaves the old or the new version. The old version, which must be
    /// `before`, is kept as the previous one; the new one has its permissions.
    pub(super) fn replace(&self, path: &FilePath, bytes: &[u8], before: Option<&Version>) -> io::Result<()> {
        if let Some(folder) = path.folder() {
            self.dir.create_dir_all(folder)?;
        }
        let draft = path.beside(&format!("{DRAFT}{}", RandomIds.next_id()));
        let written = self.write_draft(&draft, path, bytes).and_then(|()| {
            // Another process may have changed it since it was read.
            let present = self.read(path)?.map(|version| version.digest);
            if present.as_ref() != before.map(|version| &version.digest) {
                return Err(io::Error::new(
                    io::ErrorKind::ResourceBusy,
                    "another program has just changed it",
                ));
            }
            self.keep_previous(path, before)?;
            self.dir.rename(&draft, &self.dir, path.as_str())
        });
        if written.is_err() {
            // The error of the write is the one that counts.
            let _ = self.dir.remove_file(&draft);
        }
        written?;
        self.sync_folder(path)
    }

    /// Removes a file. It is kept as the previous version.
    pub(super) fn delete(&self, path: &FilePath) -> io::Result<()> {
        let backup = path.backup();
        if let Some(folder) = backup.folder() {
            self.dir.create_dir_all(folder)?;
        }
        self.dir.rename(path.as_str(), &self.dir, backup.as_str())?;
        self.sync_folder(path)
    }

    /// Returns the files below a folder, or below all of it, sorted; and whether there are more.
    pub(super) fn list(&self, prefix: &str) -> io::Result<(Vec<Listed>, bool)> {
        let (mut found, mut folders, mut visited) = (Vec::new(), vec![String::new()], 0);
        let (mut is_cut, prefix) = (false, prefix.trim().trim_start_matches("./"));
        while let Some(folder) = folders.pop() {
            let entries = if folder.is_empty() {
                self.dir.entries()?
            } else {
                self.dir.read_dir(&folder)?
            };
            for entry in entries {
                visited += 1;
                if visited > MAX_VISITED || found.len() >= MAX_LISTED {
                    is_cut = true;
                    break;
                }
                let entry = entry?;
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                let path = if folder.is_empty() {
                    name.clone()
                } else {
                    format!("{folder}/{name}")
                };
                if name.starts_with(DRAFT) || path == BACKUPS {
                    continue;
                }
                // Links are not followed: one may lead to a folder above itself.
                let kind = entry.file_type()?;
                if kind.is_dir() && (path.starts_with(prefix) || prefix.starts_with(&format!("{path}/"))) {
                    folders.push(path);
                } else if kind.is_file() && path.starts_with(prefix) {
                    found.push(Listed {
                        size: entry.metadata()?.len(),
                        path,
                    });
                }
            }
        }
        found.sort();
        Ok((found, is_cut))
    }

    fn write_draft(&self, draft: &str, path: &FilePath, bytes: &[u8]) -> io::Result<()> {
        let mut file = self
            .dir
            .open_with(draft, OpenOptions::new().write(true).create_new(true))?;
        file.write_all(bytes)?;
        if let Ok(metadata) = self.dir.metadata(path.as_str()) {
            file.set_permissions(metadata.permissions())?;
        }
        file.sync_all()
    }

    fn keep_previous(&self, path: &FilePath, before: Option<&Version>) -> io::Result<()> {
        let Some(before) = before else { return Ok(()) };
        let backup = path.backup();
        if let Some(folder) = backup.folder() {
            self.dir.create_dir_all(folder)?;
        }
        let draft = backup.beside(&format!("{DRAFT}{}", RandomIds.next_id()));
        self.write_draft(&draft, path, &before.bytes)?;
        self.dir.rename(&draft, &self.dir, backup.as_str())
    }

    /// Makes a rename durable.
    fn sync_folder(&self, path: &FilePath) -> io::Result<()> {
        self.dir.open(path.folder().unwrap_or("."))?.sync_all()
    }

    fn remove_drafts(&self) -> io::Result<()> {
        let mut folders = vec![self.dir.try_clone()?];
        let mut visited = 0;
        while let Some(folder) = folders.pop() {
            for entry in folder.entries()? {
                visited += 1;
                if visited > MAX_VISITED {
                    return Ok(());
                }
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    folders.push(entry.open_dir()?);
                } else if entry.file_name().to_string_lossy().starts_with(DRAFT) {
                    entry.remove_file()?;
                }
            }
        }
        Ok(())
    }
}
