//! The folder of an agent's files: one directory handle, below which everything happens.

use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, OpenOptions};
use rockbot_core::{Digest, IdSource, RandomIds};

use super::path::{BACKUPS, DRAFT, FilePath};

/// Maximum size of a file, in bytes.
pub(super) const MAX_FILE: usize = 4 << 20;

/// Maximum number of files in a list.
pub(super) const MAX_LISTED: usize = 1_000;

/// Maximum number of entries of folders that a list looks at.
const MAX_VISITED: usize = 20_000;

/// Minimum age of a draft, a file that is being written, that counts as left by a killed process.
/// Another host may use the folder.
const LEFT_AFTER: Duration = Duration::from_secs(60 * 60);

/// A folder. The operating system resolves every path below its handle, so neither a link nor a
/// folder that is moved while it is used leads out of it.
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

/// An entry of a folder that is listed.
enum Below {
    Folder(String),
    File(Listed),
}

impl Version {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        let digest = Digest::of([&bytes]);
        Self { bytes, digest }
    }
}

impl Folder {
    /// Opens the folder, which is created if it is missing, and removes drafts that a killed process
    /// left.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        let folder = Self {
            dir: Dir::open_ambient_dir(path, ambient_authority())?,
        };
        folder.remove_drafts();
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

    /// Replaces the content of a file, atomically: a crash leaves the old or the new version. The old
    /// version, which must be `before`, is kept as the previous version; the new version has its
    /// permissions.
    pub(super) fn replace(&self, path: &FilePath, bytes: &[u8], before: Option<&Version>) -> io::Result<()> {
        if let Some(folder) = path.folder() {
            self.dir.create_dir_all(folder)?;
        }
        let draft = new_draft();
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
            // The error of the write counts, and not an error here.
            let _ = self.dir.remove_file(&draft);
        }
        written?;
        self.sync_folder(path)
    }

    /// Removes a file. It is kept as the previous version.
    pub(super) fn delete(&self, path: &FilePath) -> io::Result<()> {
        self.dir.create_dir_all(BACKUPS)?;
        self.dir.rename(path.as_str(), &self.dir, path.backup().as_str())?;
        self.sync_folder(path)
    }

    /// Returns the files below a folder, or below all of it, sorted; and whether there are more.
    /// Files and folders that cannot be read are left out.
    pub(super) fn list(&self, prefix: &str) -> io::Result<(Vec<Listed>, bool)> {
        self.dir.entries()?;
        let mut found = Vec::new();
        let mut folders = vec![String::new()];
        let mut visited = 0;
        let mut is_cut = false;
        let prefix = prefix.trim().trim_start_matches("./");
        while let Some(folder) = folders.pop() {
            let Ok(entries) = self.dir.read_dir(if folder.is_empty() { "." } else { &folder }) else {
                continue;
            };
            for entry in entries {
                visited += 1;
                if visited > MAX_VISITED || found.len() >= MAX_LISTED {
                    is_cut = true;
                    break;
                }
                match entry.and_then(|entry| below(&folder, &entry, prefix)) {
                    Ok(Some(Below::Folder(path))) => folders.push(path),
                    Ok(Some(Below::File(file))) => found.push(file),
                    Ok(None) | Err(_) => {}
                }
            }
        }
        found.sort();
        Ok((found, is_cut))
    }

    fn write_draft(&self, draft: &str, path: &FilePath, bytes: &[u8]) -> io::Result<()> {
        self.dir.create_dir_all(BACKUPS)?;
        let mut file = self
            .dir
            .open_with(draft, OpenOptions::new().write(true).create_new(true))?;
        // Before the content: only users who may read the file may read the content.
        if let Ok(metadata) = self.dir.metadata(path.as_str()) {
            file.set_permissions(metadata.permissions())?;
        }
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn keep_previous(&self, path: &FilePath, before: Option<&Version>) -> io::Result<()> {
        let Some(before) = before else { return Ok(()) };
        let draft = new_draft();
        self.write_draft(&draft, path, &before.bytes)?;
        self.dir.rename(&draft, &self.dir, path.backup().as_str())
    }

    /// Makes a rename durable.
    fn sync_folder(&self, path: &FilePath) -> io::Result<()> {
        self.dir.open(path.folder().unwrap_or("."))?.sync_all()
    }

    /// Removes drafts that killed processes left. A host runs as well with drafts that cannot be
    /// removed.
    fn remove_drafts(&self) {
        let Ok(entries) = self.dir.read_dir(BACKUPS) else {
            return;
        };
        for entry in entries.take(MAX_VISITED).flatten() {
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            let age = changed.ok().and_then(|changed| changed.into_std().elapsed().ok());
            let is_draft = entry.file_name().to_string_lossy().starts_with(DRAFT);
            if is_draft && age.is_some_and(|age| age > LEFT_AFTER) {
                let _ = entry.remove_file();
            }
        }
    }
}

/// Returns an entry of a folder as a file or a folder, or `None` for an entry that a list of
/// `prefix` leaves out.
fn below(folder: &str, entry: &DirEntry, prefix: &str) -> io::Result<Option<Below>> {
    let Ok(name) = entry.file_name().into_string() else {
        return Ok(None);
    };
    let path = match folder {
        "" => name,
        folder => format!("{folder}/{name}"),
    };
    if path == BACKUPS {
        return Ok(None);
    }
    // Links are not followed: a link may lead to a folder above itself.
    let kind = entry.file_type()?;
    if kind.is_dir() && (path.starts_with(prefix) || prefix.starts_with(&format!("{path}/"))) {
        return Ok(Some(Below::Folder(path)));
    }
    if !kind.is_file() || !path.starts_with(prefix) {
        return Ok(None);
    }
    let size = entry.metadata()?.len();
    Ok(Some(Below::File(Listed { path, size })))
}

fn new_draft() -> String {
    format!("{BACKUPS}/{DRAFT}{}", RandomIds.next_id())
}
