//! The log in a file: one JSON line for each decision.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Mutex;

use super::{MAX_ENTRIES, RoutingEntry, lock};

/// When a file has so many lines it is rewritten. Not sooner: to replace a file costs as much as hundreds of lines.
const REWRITE_AT: usize = 5 * MAX_ENTRIES;

/// As much of a file is read; the newest end of it.
const MAX_BYTES: u64 = 4 << 20;

/// So many lines at most wait to be written.
const MAX_PENDING: usize = 32;

#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    state: Mutex<FileState>,
}

#[derive(Debug, Default)]
struct FileState {
    /// How many lines the file has, once somebody counted.
    lines: Option<usize>,
    /// Lines that are not in the file yet.
    pending: Vec<String>,
}

impl LogFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            state: Mutex::default(),
        }
    }

    /// Takes one decision in, and writes those that wait when they are many. Returns whether it is the first that waits.
    pub(super) fn buffer(&self, entry: &RoutingEntry) -> io::Result<bool> {
        let mut line = serde_json::to_string(entry)?;
        line.push('\n');
        // Writers wait for each other here: lines must not mix, and a file is rewritten by one only.
        let mut state = lock(&self.state);
        state.pending.push(line);
        if state.pending.len() >= MAX_PENDING {
            self.write_all(&mut state)?;
        }
        Ok(state.pending.len() == 1)
    }

    /// Writes the lines that wait.
    pub(super) fn write(&self) -> io::Result<()> {
        self.write_all(&mut lock(&self.state))
    }

    /// Those that cannot be written are lost.
    fn write_all(&self, state: &mut FileState) -> io::Result<()> {
        let pending = std::mem::take(&mut state.pending);
        if pending.is_empty() {
            return Ok(());
        }
        let count = match state.lines.take() {
            Some(count) => count,
            None => self.read()?.lines().count(),
        };
        if count + pending.len() < REWRITE_AT {
            private(OpenOptions::new().append(true))
                .open(&self.path)?
                .write_all(pending.concat().as_bytes())?;
            state.lines = Some(count + pending.len());
        } else {
            state.lines = Some(self.rewrite(&pending)?);
        }
        Ok(())
    }

    /// The newest decisions.
    pub(super) fn entries(&self) -> io::Result<Vec<RoutingEntry>> {
        self.write()?;
        let text = self.read()?;
        let all: Vec<_> = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        Ok(all[all.len().saturating_sub(MAX_ENTRIES)..].to_vec())
    }

    /// Keeps the newest lines and adds `new` ones; says how many there are then.
    fn rewrite(&self, new: &[String]) -> io::Result<usize> {
        let text = self.read()?;
        let all: Vec<_> = text.lines().collect();
        let kept = &all[all.len().saturating_sub(MAX_ENTRIES - new.len())..];
        let mut text = kept.join("\n");
        if !kept.is_empty() {
            text.push('\n');
        }
        text.extend(new.iter().map(String::as_str));
        let temporary = self.path.with_extension("jsonl.new");
        private(OpenOptions::new().write(true).truncate(true))
            .open(&temporary)?
            .write_all(text.as_bytes())?;
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
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        if let Err(error) = self.write() {
            tracing::warn!(%error, "the log of tiers cannot be written");
        }
    }
}

/// A file that only its owner may read.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.create(true)
}
