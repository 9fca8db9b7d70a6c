//! The ledger on disk: one line for the beginning of a call, one for its end.

use std::path::PathBuf;
use std::sync::Arc;

use rockbot_core::files::{DataFolder, Draft, FileError, FileHandle, LineFile};
use rockbot_core::{Digest, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The file in the ledger's folder.
const FILE: &str = "effects.jsonl";

/// Maximum length of a line; longer lines are not read.
const MAX_LINE: u64 = 1024 * 1024;

/// Growth of the file before it is written anew with the calls that still count.
const MAX_GROWTH: u64 = 32 * 1024 * 1024;

/// Maximum length of the lines that are appended while the file is written anew. Beyond it the
/// old file stays.
const MAX_SINCE: usize = 16 * 1024 * 1024;

/// The file of a ledger, locked for this process.
#[derive(Debug)]
pub(crate) struct EffectLog {
    folder: Arc<DataFolder>,
    /// `None` after the file was replaced, until the new file is open.
    file: Option<LineFile>,
    /// The size of the file when it was last written anew, or when that failed.
    compacted: u64,
    /// Growth before the file is written anew, in bytes.
    max_growth: u64,
    /// `true` while a thread writes the file anew.
    is_rewriting: bool,
    /// The lines that were appended meanwhile; `None` once they are too many.
    since: Option<Vec<u8>>,
    is_synced: bool,
    /// `false` after the file was replaced and its name could not be synced: a power failure may
    /// bring back the old file.
    is_durable: bool,
}

/// A rewrite of the file that has begun: the part that needs no lock on the ledger.
#[derive(Debug)]
pub(super) struct Rewrite(Arc<DataFolder>);

/// The new contents of the file, beside it.
#[derive(Debug)]
pub(super) struct Rewritten {
    draft: Draft,
    len: usize,
}

/// One record of a call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EffectLine {
    pub(super) key: Digest,
    /// The time when the call began, in milliseconds.
    pub(super) at: u64,
    /// `true` if the call has ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) ended: bool,
    /// The response, unless it is too large to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) response: Option<Box<RawValue>>,
}

/// An error of opening the ledger.
#[derive(Debug, thiserror::Error)]
#[error("the record of effects in `{folder}` cannot be opened: {cause}")]
pub(crate) struct EffectLogError {
    folder: String,
    cause: FileError,
}

impl EffectLogError {
    fn new(folder: &DataFolder, cause: FileError) -> Self {
        let folder = folder.path().display().to_string();
        Self { folder, cause }
    }
}

impl EffectLine {
    /// Creates the line of a call that begins.
    pub(super) fn began(key: Digest, at: Timestamp) -> Self {
        Self {
            key,
            at: at.as_millis(),
            ended: false,
            response: None,
        }
    }

    /// Creates the line of a call that has ended with `response`, as JSON.
    pub(super) fn ended(key: Digest, at: Timestamp, response: Option<&str>) -> Self {
        let response = response.and_then(|text| RawValue::from_string(text.to_owned()).ok());
        Self {
            ended: true,
            response,
            ..Self::began(key, at)
        }
    }

    fn write_to(&self, lines: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        serde_json::to_writer(&mut *lines, self)?;
        lines.push(b'\n');
        Ok(())
    }
}

impl EffectLog {
    /// Opens the ledger in `folder`. With `is_synced` a call begins once its record is on the disk,
    /// not only with the operating system.
    ///
    /// # Errors
    ///
    /// Returns an error if another process has it open, or the folder cannot be used.
    pub(crate) fn open(folder: PathBuf, is_synced: bool) -> Result<Self, EffectLogError> {
        let name = folder.display().to_string();
        let opened = DataFolder::open(folder).and_then(|folder| {
            let file = folder.lines(FILE)?;
            Ok(Self {
                compacted: file.len(),
                max_growth: MAX_GROWTH,
                folder: Arc::new(folder),
                file: Some(file),
                is_rewriting: false,
                since: None,
                is_synced,
                is_durable: true,
            })
        });
        opened.map_err(|cause| EffectLogError { folder: name, cause })
    }

    /// Calls `each` with every record, in order. Lines that a crash has torn are skipped.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub(super) fn read(&self, mut each: impl FnMut(EffectLine)) -> Result<(), EffectLogError> {
        let read = self.folder.read_lines(FILE, MAX_LINE, |line| {
            if let Ok(line) = serde_json::from_slice(line) {
                each(line);
            }
        });
        read.map(drop).map_err(|cause| EffectLogError::new(&self.folder, cause))
    }

    /// Appends a record. Returns a handle if it must be synced before the call begins.
    pub(super) fn append(&mut self, line: &EffectLine) -> Result<Option<FileHandle>, FileError> {
        let must_sync = self.is_synced && !line.ended;
        if must_sync {
            self.confirm()?;
        }
        let mut lines = Vec::new();
        // A digest, numbers and JSON that was read as such can always be written.
        let _ = line.write_to(&mut lines);
        self.file()?.append(&lines)?;
        if let Some(since) = &mut self.since {
            since.extend_from_slice(&lines);
            if since.len() > MAX_SINCE {
                self.since = None;
            }
        }
        must_sync.then(|| self.file()?.handle()).transpose()
    }

    /// Begins to write the file anew if it has grown so much that it is worth it. End it with
    /// [`EffectLog::finish_rewrite`].
    pub(super) fn begin_rewrite(&mut self) -> Option<Rewrite> {
        let len = self.file.as_ref().map_or(0, LineFile::len);
        let is_large = len > self.compacted.saturating_add(self.max_growth);
        // A name that must be confirmed first is confirmed by the next call that must be durable.
        let is_confirmed = self.is_durable || !self.is_synced;
        (is_large && is_confirmed && !self.is_rewriting).then(|| {
            (self.is_rewriting, self.since) = (true, Some(Vec::new()));
            Rewrite(Arc::clone(&self.folder))
        })
    }

    /// Replaces the file by the lines that were written, and the lines that were appended
    /// meanwhile. Where that fails the old file stays, and the next attempt waits until it has
    /// grown as much again.
    pub(super) fn finish_rewrite(&mut self, written: Result<Rewritten, FileError>) -> Result<(), FileError> {
        let since = self.since.take();
        self.is_rewriting = false;
        self.compacted = self.file.as_ref().map_or(self.compacted, LineFile::len);
        let Rewritten { mut draft, len } = written?;
        let Some(since) = since else {
            tracing::warn!("too many effects were recorded while their file was shortened; it keeps growing meanwhile");
            return Ok(());
        };
        if !since.is_empty() {
            draft.append(&since)?;
        }
        let published = self.publish(draft);
        if self.file.is_none() {
            self.compacted = u64::try_from(len + since.len()).unwrap_or(u64::MAX);
        }
        published
    }

    /// Replaces the file by these records. Blocks.
    pub(super) fn rewrite(&mut self, records: impl Iterator<Item = EffectLine>) -> Result<(), FileError> {
        self.since = Some(Vec::new());
        let written = Rewrite(Arc::clone(&self.folder)).write(records);
        self.finish_rewrite(written)
    }

    /// Sets the growth before the file is written anew.
    #[cfg(test)]
    pub(super) fn with_max_growth(mut self, bytes: u64) -> Self {
        self.max_growth = bytes;
        self
    }

    /// Writes the file anew and waits for the disk, if its name could not be synced.
    fn confirm(&mut self) -> Result<(), FileError> {
        if self.is_durable {
            return Ok(());
        }
        let lines = self.folder.read(FILE, u64::MAX - 1)?.unwrap_or_default();
        let draft = self.folder.draft(FILE, &lines)?;
        self.publish(draft)
    }

    fn publish(&mut self, draft: Draft) -> Result<(), FileError> {
        draft.publish()?;
        // Appends must reach the file that has the name now.
        self.file = None;
        let synced = self.folder.sync(FILE);
        self.is_durable = synced.is_ok();
        synced
    }

    /// Returns the file, which is opened again if it was replaced.
    fn file(&mut self) -> Result<&mut LineFile, FileError> {
        let file = match self.file.take() {
            Some(file) => file,
            None => self.folder.lines(FILE)?,
        };
        Ok(self.file.insert(file))
    }
}

impl Rewrite {
    /// Writes these records beside the file and waits for the disk. Blocks.
    pub(super) fn write(&self, records: impl Iterator<Item = EffectLine>) -> Result<Rewritten, FileError> {
        let mut lines = Vec::new();
        for record in records {
            let _ = record.write_to(&mut lines);
        }
        let draft = self.0.draft(FILE, &lines)?;
        let len = lines.len();
        Ok(Rewritten { draft, len })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_false(value: &bool) -> bool {
    !value
}
