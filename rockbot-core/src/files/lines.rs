//! Append-only files of lines.

use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::atomic_write::Draft;
use super::error::FileError;
use super::no_follow::open_plain;
use super::sync::{sync_file, sync_names};
use super::system;

/// An append-only file of lines.
///
/// A torn line, which a crash left without its newline, is closed before the next append, so that
/// two records never merge into one.
#[derive(Debug)]
pub struct LineFile {
    file: File,
    path: PathBuf,
    /// Metadata at the time of opening, to detect that another process replaced the file.
    metadata: Metadata,
    len: u64,
    /// `true` if the last line may be torn, that is, may lack its newline.
    torn: bool,
}

impl LineFile {
    pub(super) fn open(path: PathBuf) -> Result<Self, FileError> {
        let mut options = system::open_options();
        let opened = open_plain(&path, options.read(true).append(true), true)?;
        let (mut file, metadata) = opened.ok_or_else(|| FileError::NotPlain(path.clone()))?;
        let len = metadata.len();
        let torn = ends_torn(&mut file, len).map_err(FileError::io("read", &path))?;
        Ok(Self {
            file,
            path,
            metadata,
            len,
            torn,
        })
    }

    /// Appends `lines`, each with its newline, with one write, and returns the offset of the first.
    ///
    /// One write call keeps records of concurrent appends apart (`O_APPEND`), and a crash tears at
    /// most the last record.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses. A part that was written is truncated, or closed by the
    /// next append.
    pub fn append(&mut self, lines: &[u8]) -> Result<u64, FileError> {
        if self.torn {
            // The bytes after the last newline belong to a torn record. Closing them with a newline makes them
            // a line of their own, which readers skip; without it they would corrupt the next record.
            self.write(b"\n")?;
        }
        let start = self.len;
        self.write(lines)?;
        Ok(start)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        if let Err(error) = self.file.write_all(bytes) {
            // Truncate the torn write. If even that fails, remember that the file ends torn, so that the
            // next append closes the line.
            if self.file.set_len(self.len).is_err() {
                self.torn = true;
                self.len = self.file.metadata().map_or(self.len, |metadata| metadata.len());
            }
            return Err(FileError::io("written", &self.path)(error));
        }
        self.len += bytes.len() as u64;
        self.torn = false;
        Ok(())
    }

    /// Returns `true` if this still is the file at its path, unchanged since the last append: no
    /// other process removed, replaced or changed it.
    pub fn is_current(&self) -> bool {
        // The inode number of an open file cannot be reused, so equal numbers mean the same file.
        let seen = std::fs::symlink_metadata(&self.path);
        seen.is_ok_and(|seen| system::is_same_file(&seen, &self.metadata) && seen.len() == self.len)
    }

    /// Returns the size of the file, in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns `true` if the file has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a second handle of the file, to sync it without holding up writers.
    ///
    /// # Errors
    ///
    /// Returns an error if the process has no handle left.
    pub fn handle(&self) -> Result<FileHandle, FileError> {
        let file = self
            .file
            .try_clone()
            .map_err(FileError::io("opened again", &self.path))?;
        let path = self.path.clone();
        Ok(FileHandle { file, path })
    }

    /// Removes the bytes before `offset` atomically: the rest is written to a new file, which
    /// replaces this file. With `sync` it returns once the disk has the rest.
    ///
    /// # Errors
    ///
    /// Returns [`FileError::NotDurable`] if the folder cannot be synced: the file is shortened then.
    /// With any other error everything is still there.
    pub fn keep_from(&mut self, offset: u64, sync: bool) -> Result<(), FileError> {
        let failed = || FileError::io("shortened", &self.path);
        if offset >= self.len {
            self.file.set_len(0).map_err(failed())?;
            (self.len, self.torn) = (0, false);
            return Ok(());
        }
        let mut rest = Vec::new();
        let read = self
            .file
            .seek(SeekFrom::Start(offset))
            .and_then(|_| self.file.read_to_end(&mut rest));
        read.map_err(failed())?;
        Draft::write(self.path.clone(), &rest, sync)?.publish()?;
        *self = Self::open(self.path.clone())?;
        // Lines that are appended from now on are in the new file, and synced with it: its name must
        // survive, too.
        match self.path.parent().filter(|_| sync) {
            Some(folder) => sync_names(folder),
            None => Ok(()),
        }
    }
}

/// A second handle of a [`LineFile`], to sync it.
#[derive(Debug)]
pub struct FileHandle {
    file: File,
    path: PathBuf,
}

impl FileHandle {
    /// Waits until the disk has the appended bytes. Blocks.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. The system may have forgotten the bytes that it could not
    /// write. A later sync that succeeds says nothing about them: they have to be written again.
    pub fn sync(&self) -> io::Result<()> {
        sync_file(&self.file, &self.path)
    }
}

fn ends_torn(file: &mut File, len: u64) -> io::Result<bool> {
    if len == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::Start(len - 1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Calls `each` with every non-empty line of `file`, without its end. Returns the number of lines
/// longer than `limit` bytes: they are skipped and never held in memory whole.
pub(super) fn read(file: File, path: &Path, limit: u64, mut each: impl FnMut(&[u8])) -> Result<u64, FileError> {
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut line = Vec::new();
    let mut overlong = 0;
    let mut first = true;
    loop {
        line.clear();
        let read = (&mut reader).take(limit).read_until(b'\n', &mut line);
        if read.map_err(FileError::io("read", path))? == 0 {
            return Ok(overlong);
        }
        if !line.ends_with(b"\n") && line.len() as u64 == limit {
            overlong += 1;
            reader.skip_until(b'\n').map_err(FileError::io("read", path))?;
            first = false;
            continue;
        }
        let text = if std::mem::take(&mut first) {
            without_bom(&line)
        } else {
            &line
        };
        let text = text.trim_ascii();
        if !text.is_empty() {
            each(text);
        }
    }
}

/// Returns the text without a byte order mark, which some editors write.
pub fn without_bom(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}
