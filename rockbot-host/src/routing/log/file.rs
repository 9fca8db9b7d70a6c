//! The routing log in a file: one JSON line per decision.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Mutex;

use rockbot_core::support::json;

use super::{MAX_ENTRIES, RoutingEntry, lock};

/// Maximum number of bytes that are read, from the newest end of the file.
const MAX_BYTES: u64 = 4 << 20;

/// Maximum number of buffered lines.
const MAX_PENDING: usize = 100;

/// A log file with its buffer.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    state: Mutex<FileState>,
}

#[derive(Debug, Default)]
struct FileState {
    /// Number of lines in the file, once they have been counted.
    lines: Option<usize>,
    /// The buffered lines.
    pending: Vec<Vec<u8>>,
}

impl LogFile {
    /// Creates the log of a file, which is not opened yet.
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            state: Mutex::default(),
        }
    }

    /// Buffers a decision, and writes the buffer if it is full. Returns `true` if the decision is the
    /// first in the buffer.
    pub(super) fn buffer(&self, entry: &RoutingEntry) -> io::Result<bool> {
        let mut line = Vec::with_capacity(512);
        json::write(&mut line, entry)?;
        line.push(b'\n');
        // The lock is held while writing: lines must not interleave, and only one writer may rewrite the
        // file.
        let mut state = lock(&self.state);
        state.pending.push(line);
        if state.pending.len() >= MAX_PENDING {
            self.write_all(&mut state)?;
        }
        Ok(state.pending.len() == 1)
    }

    /// Writes the buffered lines.
    pub(super) fn write(&self) -> io::Result<()> {
        self.write_all(&mut lock(&self.state))
    }

    /// Writes the buffer. Lines that cannot be written are dropped: the log is no reason to fail a
    /// turn or to grow.
    fn write_all(&self, state: &mut FileState) -> io::Result<()> {
        let pending = std::mem::take(&mut state.pending);
        if pending.is_empty() {
            return Ok(());
        }
        // Taken out first: after an error the file has an unknown number of lines, and is counted again.
        let count = match state.lines.take() {
            Some(count) => count,
            None => self.read()?.lines().count(),
        };
        if count + pending.len() <= MAX_ENTRIES {
            private(OpenOptions::new().append(true))
                .open(&self.path)?
                .write_all(&pending.concat())?;
            state.lines = Some(count + pending.len());
        } else {
            state.lines = Some(self.rewrite(&pending)?);
        }
        Ok(())
    }

    /// Writes the buffer and returns the newest decisions.
    pub(super) fn entries(&self) -> io::Result<Vec<RoutingEntry>> {
        self.write()?;
        let text = self.read()?;
        let all: Vec<_> = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        Ok(all[all.len().saturating_sub(MAX_ENTRIES)..].to_vec())
    }

    /// Rewrites the file with the newest lines, including the `new` lines, and returns their
    /// number.
    ///
    /// The file is replaced by a rename, so a crash leaves the old or the new file. It is not
    /// synced: a log that loses its newest lines in a power failure is acceptable.
    fn rewrite(&self, new: &[Vec<u8>]) -> io::Result<usize> {
        let text = self.read()?;
        let all: Vec<_> = text.lines().collect();
        let kept = &all[all.len().saturating_sub(MAX_ENTRIES - new.len())..];
        let mut text = kept.join("\n").into_bytes();
        if !kept.is_empty() {
            text.push(b'\n');
        }
        text.extend(new.iter().flatten());
        let temporary = self.path.with_extension("jsonl.new");
        private(OpenOptions::new().write(true).truncate(true))
            .open(&temporary)?
            .write_all(&text)?;
        std::fs::rename(&temporary, &self.path)?;
        Ok(kept.len() + new.len())
    }

    fn read(&self) -> io::Result<String> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            file => file?,
        };
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MAX_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        if let Err(error) = self.write() {
            tracing::warn!(%error, "routing log cannot be written; buffered decisions are lost");
        }
    }
}

/// Creates files that only their owner may read.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.create(true)
}
