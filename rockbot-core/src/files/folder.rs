//! A folder of documents that one process holds at a time.

use std::fs::{DirEntry, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::atomic_write::{self, Draft};
use super::error::FileError;
use super::lines::{self, LineFile};
use super::lock::FileLock;
use super::name::IdTooLong;
use super::no_follow::open_plain;
use super::principal_dir;
use super::sync::sync_names;
use super::system;
use crate::Principal;

/// Maximum depth of nested folders: a name of [`encode`](super::encode) needs 16, twice.
const DEPTH: usize = 40;

/// A folder of documents, locked by this process until it is dropped, unless it is
/// [`unheld`](DataFolder::unheld).
///
/// Documents have names relative to the folder, with `/` between nested folders. No symbolic link
/// inside the folder is followed: a link is an error where a document is read or written, and is
/// left out of lists. Replacing or removing a document replaces or removes the link itself. (A
/// folder that is exchanged for a link at the very moment of its use cannot be detected; for a
/// file it is.) The folder itself may be a link.
#[derive(Debug)]
pub struct DataFolder {
    root: PathBuf,
    /// Time when the folder was locked.
    opened: SystemTime,
    /// Never read: dropping it releases the folder.
    _lock: Option<FileLock>,
}

/// A file in a [`DataFolder`], as a listing returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileEntry {
    /// Name, relative to the folder.
    pub name: String,
    /// Time of the last change, where the system knows it.
    pub modified: Option<SystemTime>,
    /// Size in bytes.
    pub len: u64,
}

impl FileEntry {
    fn new(name: String, metadata: &Metadata) -> Self {
        Self {
            name,
            modified: metadata.modified().ok(),
            len: metadata.len(),
        }
    }
}

impl DataFolder {
    /// Opens the folder at `root` and locks it for this process. Creates it if it is missing.
    ///
    /// # Errors
    ///
    /// Returns [`FileError::Locked`] if the folder is open already, here or in another process, and
    /// an error if it cannot be created.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, FileError> {
        let root = root.into();
        let lock = FileLock::take_folder(&root)?;
        Ok(Self {
            root,
            opened: SystemTime::now(),
            _lock: Some(lock),
        })
    }

    /// Returns a folder that others own: its contents may change at any time. Creates and locks
    /// nothing.
    pub fn unheld(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            opened: SystemTime::now(),
            _lock: None,
        }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Opens the file `name` for reading; `None` if there is no such file.
    ///
    /// # Errors
    ///
    /// Returns an error if it is no plain file, or cannot be opened.
    pub fn file(&self, name: &str) -> Result<Option<File>, FileError> {
        let Some(path) = self.existing(name)? else {
            return Ok(None);
        };
        Ok(open_plain(&path, OpenOptions::new().read(true), false)?.map(|(file, _)| file))
    }

    /// Reads the document `name`; `None` if there is no such document.
    ///
    /// # Errors
    ///
    /// Returns an error if it is no plain file, has more than `limit` bytes, or cannot be read.
    pub fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, FileError> {
        let Some(path) = self.existing(name)? else {
            return Ok(None);
        };
        let Some((file, metadata)) = open_plain(&path, OpenOptions::new().read(true), false)? else {
            return Ok(None);
        };
        let too_large = || FileError::TooLarge {
            path: path.clone(),
            limit,
        };
        if metadata.len() > limit {
            return Err(too_large());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
        // Another process may append between `metadata` and `read`: the limit holds for the bytes
        // that are really read.
        let read = file.take(limit + 1).read_to_end(&mut bytes);
        read.map_err(FileError::io("read", &path))?;
        if bytes.len() as u64 > limit {
            return Err(too_large());
        }
        Ok(Some(bytes))
    }

    /// Calls `each` with every line of the file `name`, without its end. Empty lines, a byte order
    /// mark and carriage returns at line ends are skipped. Returns the number of lines longer than
    /// `limit` bytes, which are skipped too; `None` if there is no such file.
    ///
    /// # Errors
    ///
    /// Returns an error if it is no plain file, or cannot be read.
    pub fn read_lines(&self, name: &str, limit: u64, each: impl FnMut(&[u8])) -> Result<Option<u64>, FileError> {
        let file = self.file(name)?;
        file.map(|file| lines::read(file, &self.root.join(name), limit, each))
            .transpose()
    }

    /// Opens the file `name` for appending lines. Creates it if it is missing.
    ///
    /// # Errors
    ///
    /// Returns an error if it is no plain file, or cannot be opened.
    pub fn lines(&self, name: &str) -> Result<LineFile, FileError> {
        LineFile::open(self.made(name)?)
    }

    /// Replaces the document `name` atomically: neither a crash nor a power loss leaves it half
    /// written. Returns once the disk has it.
    ///
    /// The order is fixed: write the new bytes beside the document, sync them, rename, sync the folder.
    ///
    /// # Errors
    ///
    /// Returns [`FileError::NotDurable`] if the folder cannot be synced: the new document is
    /// visible then. With any other error the old document stays.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), FileError> {
        self.draft(name, bytes)?.publish()?;
        self.sync(name)
    }

    /// Writes the new contents beside the document and syncs them, the first half of
    /// [`DataFolder::replace`].
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses.
    pub fn draft(&self, name: &str, bytes: &[u8]) -> Result<Draft, FileError> {
        Draft::write(self.made(name)?, bytes, true)
    }

    /// Syncs the names in the folder that holds `name`, so that a rename or a new file survives a
    /// power loss.
    ///
    /// # Errors
    ///
    /// Returns [`FileError::NotDurable`] if the system refuses.
    pub fn sync(&self, name: &str) -> Result<(), FileError> {
        let path = self.root.join(name);
        let folder = path.parent().unwrap_or(&self.root);
        sync_names(folder)
    }

    /// Removes the file `name`. Returns `true` if it existed.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses.
    pub fn remove(&self, name: &str) -> Result<bool, FileError> {
        let Some(path) = self.existing(name)? else {
            return Ok(false);
        };
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(FileError::io("removed", &path)(error)),
        }
    }

    /// Removes the remains of the [drafts](Self::draft) of killed processes, and returns the number
    /// of files: plain files `NAME.tmp` from before this folder was opened, whose NAME `is_ours`
    /// accepts as a name that the store writes. Nested folders are searched only if `enters`
    /// accepts them.
    ///
    /// Call it when the store is opened. A file that cannot be removed stays, and so do the files
    /// of a folder that cannot be read: they only take room.
    pub fn remove_drafts(&self, enters: impl Fn(&str) -> bool, is_ours: impl Fn(&str) -> bool) -> usize {
        let mut drafts = Vec::new();
        let is_draft = |name: &str| name.strip_suffix(atomic_write::ENDING).is_some_and(&is_ours);
        let is_old = |file: Metadata| file.modified().is_ok_and(|modified| modified < self.opened);
        let mut note = |name: String, entry: &DirEntry| {
            if is_draft(&name) && entry.metadata().is_ok_and(is_old) {
                drafts.push(name);
            }
        };
        let _ = walk(&self.root, "", (DEPTH, &|folder| !enters(folder)), &mut note);
        let removed = drafts.iter().filter(|name| self.remove(name).unwrap_or_default());
        removed.count()
    }

    /// Quarantines the file `name`, whatever it is: renames it to `name.damaged`, or `name.damaged-2`
    /// and so on if that is taken, and returns the new name. Its contents stay, for a person to look
    /// at.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses.
    pub fn quarantine(&self, name: &str) -> Result<String, FileError> {
        let path = self.made(name)?;
        let aside = self.free_name(name)?;
        std::fs::rename(&path, self.root.join(&aside)).map_err(FileError::io("quarantined", &path))?;
        Ok(aside)
    }

    /// Copies the file `name` to the name that [`DataFolder::quarantine`] would have chosen, and
    /// returns that name.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such file, and when the system refuses.
    pub fn quarantine_copy(&self, name: &str) -> Result<String, FileError> {
        let path = self.root.join(name);
        let mut from = self.file(name)?.ok_or_else(|| FileError::NotPlain(path.clone()))?;
        let aside = self.free_name(name)?;
        let mut options = system::open_options();
        let to = options.write(true).create_new(true).open(self.root.join(&aside));
        let copied = to.and_then(|mut to| io::copy(&mut from, &mut to));
        copied.map_err(FileError::io("copied", &path))?;
        Ok(aside)
    }

    fn free_name(&self, name: &str) -> Result<String, FileError> {
        let endings = std::iter::once(".damaged".to_owned()).chain((2..10_000).map(|n| format!(".damaged-{n}")));
        let mut names = endings.map(|ending| format!("{name}{ending}"));
        let free = names.find(|name| std::fs::symlink_metadata(self.root.join(name)).is_err());
        free.ok_or_else(|| {
            let source = io::Error::from(io::ErrorKind::AlreadyExists);
            FileError::io(
                "quarantined: it has ten thousand quarantined copies already; remove some",
                &self.root.join(name),
            )(source)
        })
    }

    /// Lists the files in the folder `under` (empty for the whole), nested files included, in no
    /// particular order. Names that are not Unicode are left out, and so is everything that is not
    /// a plain file.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be read. Nested folders that cannot be read are left
    /// out.
    pub fn list(&self, under: &str) -> Result<Vec<FileEntry>, FileError> {
        self.list_except(under, &|_| false)
    }

    /// Lists the files of `principal` as [`DataFolder::list`] does. Names are relative to this folder.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be read.
    pub fn list_of(&self, principal: &Principal) -> Result<Vec<FileEntry>, FileError> {
        match principal_dir::folder_of(principal) {
            Ok(folder) if folder.is_empty() => self.list_except("", &|name| name.starts_with('@')),
            Ok(folder) => self.list(&folder),
            // A principal without a file name cannot have files.
            Err(IdTooLong { .. }) => Ok(Vec::new()),
        }
    }

    fn list_except(&self, under: &str, except: &dyn Fn(&str) -> bool) -> Result<Vec<FileEntry>, FileError> {
        let mut found = Vec::new();
        let path = if under.is_empty() {
            Some(self.root.clone())
        } else {
            self.existing(under)?
        };
        let Some(path) = path.filter(|path| under.is_empty() || is_folder(path)) else {
            return Ok(found);
        };
        // A file that another process removed meanwhile is left out.
        let mut add = |name, entry: &DirEntry| found.extend(entry.metadata().map(|file| FileEntry::new(name, &file)));
        walk(&path, under, (DEPTH, except), &mut add).map_err(FileError::io("listed", &path))?;
        Ok(found)
    }

    /// Returns name, size and time of the plain file `name` without reading it; `None` if there is
    /// no such file.
    ///
    /// # Errors
    ///
    /// Returns an error if it is no plain file, or the system refuses.
    pub fn find(&self, name: &str) -> Result<Option<FileEntry>, FileError> {
        let Some(path) = self.existing(name)? else {
            return Ok(None);
        };
        match std::fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_file() => Ok(Some(FileEntry::new(name.to_owned(), &metadata))),
            Ok(_) => Err(FileError::NotPlain(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(FileError::io("read", &path)(error)),
        }
    }

    /// Returns the path of `name`; `None` if a folder on the way is missing. Checks every such
    /// folder, since the system would follow a link there.
    fn existing(&self, name: &str) -> Result<Option<PathBuf>, FileError> {
        let mut path = self.root.clone();
        let mut pieces = pieces(&self.root, name)?.peekable();
        while let Some(piece) = pieces.next() {
            path.push(piece);
            if pieces.peek().is_some() {
                match std::fs::symlink_metadata(&path) {
                    Ok(metadata) if metadata.is_dir() => {}
                    Ok(_) => return Err(FileError::NotPlain(path)),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                    Err(error) => return Err(FileError::io("read", &path)(error)),
                }
            }
        }
        Ok(Some(path))
    }

    /// Returns the path of `name` and creates its folders if they are missing.
    fn made(&self, name: &str) -> Result<PathBuf, FileError> {
        if let Some(path) = self.existing(name)? {
            return Ok(path);
        }
        for (at, _) in name.match_indices('/') {
            let folder = self.root.join(&name[..at]);
            match system::make_folder(&folder, false) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(FileError::io("made", &folder)(error));
                }
                _ => {}
            }
        }
        self.existing(name)?
            .ok_or_else(|| FileError::NotPlain(self.root.join(name)))
    }
}

/// Splits a name into its segments. No segment leads out of the folder.
fn pieces<'a>(root: &Path, name: &'a str) -> Result<impl Iterator<Item = &'a str>, FileError> {
    // On Windows a backslash stands between folders, and a colon after a drive.
    let foreign = |piece: &str| cfg!(windows) && piece.contains(['\\', ':']);
    let leads_out = |piece: &str| matches!(piece, "" | "." | "..") || foreign(piece);
    if name.split('/').any(leads_out) {
        return Err(FileError::NotPlain(root.join(name)));
    }
    Ok(name.split('/'))
}

fn is_folder(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Calls `each` with every plain file in `folder`, nested files included, and its name behind
/// `prefix`.
fn walk(
    folder: &Path,
    prefix: &str,
    (depth, except): (usize, &dyn Fn(&str) -> bool),
    each: &mut dyn FnMut(String, &DirEntry),
) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let name = if prefix.is_empty() {
            name
        } else {
            format!("{prefix}/{name}")
        };
        let kind = entry.file_type()?;
        if kind.is_file() {
            each(name, &entry);
        } else if kind.is_dir() && depth > 0 && !except(&name) {
            // A folder that cannot be read must not hide the others.
            let _ = walk(&entry.path(), &name, (depth - 1, except), each);
        }
    }
    Ok(())
}
