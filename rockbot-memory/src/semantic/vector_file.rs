//! Vectors on disk.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rockbot_core::embedding::Embedding;
use rockbot_core::files::{DataFolder, FileError, name_of};
use rockbot_core::store::StoreError;
use rockbot_core::{Digest, Principal};
use rockbot_store::kit::{failed, file_name, open_folder};
use serde::{Deserialize, Serialize};

use super::index::StoredVectors;

const NAME: &str = "vectors.jsonl";

/// Maximum length of a line, in bytes: vectors have up to some thousand numbers.
const MAX_LINE: u64 = 1 << 20;

/// Maximum deviation of a vector's length from 1 that counts as rounding; a larger deviation is
/// damage.
const ROUNDING: f32 = 1e-3;

/// A folder of vectors, with a file for each principal. It is a cache: everything in it can be
/// computed again.
#[derive(Debug)]
pub(super) struct VectorFiles(Mutex<DataFolder>);

/// A line of the file: a vector under the digest of its text.
#[derive(Debug, Serialize, Deserialize)]
struct VectorLine {
    text: Digest,
    /// The numbers as little-endian `f32`, in Base64.
    vector: String,
}

impl VectorFiles {
    pub(super) fn open(folder: PathBuf) -> Result<Self, StoreError> {
        let folder = open_folder(folder, "the folder of vectors", |name| file_name(name) == NAME)?;
        Ok(Self(Mutex::new(folder)))
    }

    fn folder(&self) -> MutexGuard<'_, DataFolder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads the vectors of `principal`. Unreadable lines are skipped.
    pub(super) fn load(&self, principal: &Principal) -> Result<StoredVectors, StoreError> {
        let name = file_of(principal)?;
        let folder = self.folder();
        let mut filed = StoredVectors::default();
        let read = folder.read_lines(&name, MAX_LINE, |line| {
            filed.lines += 1;
            let line: Option<VectorLine> = serde_json::from_slice(line).ok();
            filed
                .vectors
                .extend(line.and_then(|line| Some((line.text, vector(&line.vector)?))));
        });
        match read {
            Err(error) if error.is_damage() => quarantine(&folder, &name, &error).map(|()| StoredVectors::default()),
            read => read.map(|_| filed),
        }
        .map_err(|error| failed("the vectors of memories cannot be read", error))
    }

    pub(super) fn append(&self, principal: &Principal, vectors: &[(Digest, &[f32])]) -> Result<(), StoreError> {
        let name = file_of(principal)?;
        let lines = lines(vectors.iter().copied());
        let appended = self.folder().lines(&name).and_then(|mut file| file.append(&lines));
        appended.map(drop).map_err(unwritten)
    }

    /// Rewrites the file with exactly these vectors.
    pub(super) fn replace(&self, principal: &Principal, vectors: &[(Digest, Vec<f32>)]) -> Result<(), StoreError> {
        let lines = lines(vectors.iter().map(|(text, values)| (*text, &**values)));
        self.folder().replace(&file_of(principal)?, &lines).map_err(unwritten)
    }
}

fn unwritten(error: FileError) -> StoreError {
    failed("the vectors of memories cannot be written", error)
}

fn file_of(principal: &Principal) -> Result<String, StoreError> {
    name_of(principal, NAME).map_err(|error| failed("the vectors of a principal have no file", error))
}

fn quarantine(folder: &DataFolder, name: &str, error: &FileError) -> Result<(), FileError> {
    let moved = folder.quarantine(name)?;
    tracing::warn!(name, quarantined_as = moved, %error, "vectors of memories are asked for again");
    Ok(())
}

fn lines<'a>(vectors: impl Iterator<Item = (Digest, &'a [f32])>) -> Vec<u8> {
    let mut lines = Vec::new();
    for (text, values) in vectors {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let vector = STANDARD.encode(bytes);
        serde_json::to_writer(&mut lines, &VectorLine { text, vector }).expect("a line is two texts");
        lines.push(b'\n');
    }
    lines
}

/// Decodes a vector; returns `None` if it is damaged, since vectors are written with a length of 1.
fn vector(text: &str) -> Option<Embedding> {
    let bytes = STANDARD.decode(text).ok()?;
    let (numbers, rest) = bytes.as_chunks::<4>();
    let values: Vec<_> = numbers.iter().map(|&number| f32::from_le_bytes(number)).collect();
    let length: f32 = values.iter().map(|value| value * value).sum();
    let is_whole = rest.is_empty() && (length - 1.0).abs() < ROUNDING;
    Embedding::new(values).ok().filter(|_| is_whole)
}
