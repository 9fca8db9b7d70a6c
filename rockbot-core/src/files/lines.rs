//! Files that grow by whole lines.

use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::atomic_write::Draft;
use super::error::FileError;
use super::no_follow::open_plain;
use super::system;

/// A file that whole lines are appended to.
///
/// A line that a crash left without its end is closed before the next one is written, so the two never become one.
#[derive(Debug)]
pub struct LineFile {
    file: File,
    path: PathBuf,
    /// What the file was when it was opened.
    metadata: Metadata,
    len: u64,
    /// Whether the last line may lack its end.
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

    /// Appends `lines`, each with its newline, with one write. Returns where they begin.
    ///
    /// # Errors
    ///
    /// Fails when the system refuses. What part of the lines was written is taken back, or closed by the next append.
    pub fn append(&mut self, lines: &[u8]) -> Result<u64, FileError> {
        if self.torn {
            // What stands after the last newline is nobody's record; it must not be glued to the next one.
            self.write(b"\n")?;
        }
        let start = self.len;
        self.write(lines)?;
        Ok(start)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        if let Err(error) = self.file.write_all(bytes) {
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

    /// Whether this still is the file at its place, as it was left: nobody else removed, replaced or changed it.
    pub fn is_current(&self) -> bool {
        // No other file can get the number of one that is open.
        let seen = std::fs::symlink_metadata(&self.path);
        seen.is_ok_and(|seen| system::is_same_file(&seen, &self.metadata) && seen.len() == self.len)
    }

    /// How many bytes the file has.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A second handle of the same file, to sync it without holding up writers.
    ///
    /// # Errors
    ///
    /// Fails when the process has no handle left.
    pub fn handle(&self) -> Result<File, FileError> {
        self.file.try_clone().map_err(FileError::io("opened again", &self.path))
    }

    /// Takes away what stands before `offset`, in one step that a crash cannot leave half done. With `sync` it waits
    /// until the disk has what is left.
    ///
    /// # Errors
    ///
    /// Fails when the system refuses; then everything is still there.
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
        Ok(())
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

/// Gives `each` line of `file` that has something in it, without its end. Returns how many were longer than `limit`
/// bytes: they are skipped, and never held in memory whole.
pub(super) fn read(file: File, path: &Path, limit: u64, mut each: impl FnMut(&[u8])) -> Result<u64, FileError> {
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let (mut line, mut overlong, mut first) = (Vec::new(), 0, true);
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

/// The text without the mark that some editors put before it.
pub fn without_bom(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}
