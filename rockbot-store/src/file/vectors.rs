//! Vectors of texts in files: `vectors.jsonl`, one for each principal.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rockbot_core::embedding::Embedding;
use rockbot_core::files::{DataFolder, FileError, name_of};
use rockbot_core::store::{StoreError, VectorCache};
use rockbot_core::{Digest, Principal};
use serde::{Deserialize, Serialize};

use crate::storage::blocking::{blocking, failed};
use crate::storage::folder::{file_name, open_folder};
use crate::storage::vector_bytes;

const NAME: &str = "vectors.jsonl";

/// Maximum length of a line, in bytes: vectors have up to some thousand numbers.
const MAX_LINE: u64 = 1 << 20;

/// A [`VectorCache`] in a folder, with a file for each principal: `vectors.jsonl`, those of other
/// principals in `@{principal}/vectors.jsonl`.
///
/// The folder is this value's alone, so the file of a principal is read once, and later calls of
/// [`load`](VectorCache::load) return nothing.
#[derive(Debug, Clone)]
pub struct FileVectorCache(Arc<Mutex<Files>>);

#[derive(Debug)]
struct Files {
    folder: DataFolder,
    /// The principals whose files were read.
    read: HashSet<Principal>,
    /// Number of lines of each file that was read or written.
    lines: HashMap<Principal, usize>,
}

/// A line of the file: a vector under the digest of its text.
#[derive(Debug, Serialize, Deserialize)]
struct VectorLine {
    text: Digest,
    /// The bytes of the vector, in Base64.
    vector: String,
}

impl FileVectorCache {
    /// Opens the cache in `folder`, which is created if it is missing.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder is already open, in this or another process, or cannot be
    /// created.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let folder = open_folder(folder.into(), "the folder of vectors", |name| file_name(name) == NAME)?;
        Ok(Self(Arc::new(Mutex::new(Files {
            folder,
            read: HashSet::new(),
            lines: HashMap::new(),
        }))))
    }

    /// Does some work on a blocking thread, on the file of `principal`.
    async fn on_file<T: Send + 'static>(
        &self,
        principal: &Principal,
        work: impl FnOnce(&mut Files, Principal, String) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (files, principal) = (self.clone(), principal.clone());
        blocking(move || {
            let name = name_of(&principal, NAME);
            let name = name.map_err(|error| failed("the vectors of a principal have no file", error))?;
            work(&mut files.lock(), principal, name)
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl VectorCache for FileVectorCache {
    async fn load(&self, principal: &Principal, texts: &[Digest]) -> Result<Vec<(Digest, Embedding)>, StoreError> {
        let texts: BTreeSet<_> = texts.iter().copied().collect();
        self.on_file(principal, move |files, principal, name| {
            if !files.read.insert(principal.clone()) {
                return Ok(Vec::new());
            }
            let (vectors, lines) = files.vectors(&name, &texts)?;
            files.lines.insert(principal, lines);
            Ok(vectors)
        })
        .await
    }

    async fn add(&self, principal: &Principal, vectors: &[(Digest, Embedding)]) -> Result<usize, StoreError> {
        let (added, count) = (lines(vectors), vectors.len());
        self.on_file(principal, move |files, principal, name| {
            let mut file = files.folder.lines(&name).map_err(unwritten)?;
            file.append(&added).map_err(unwritten)?;
            let lines = files.lines.entry(principal).or_default();
            *lines += count;
            Ok(*lines)
        })
        .await
    }

    async fn retain(&self, principal: &Principal, texts: &[Digest]) -> Result<(), StoreError> {
        let texts: BTreeSet<_> = texts.iter().copied().collect();
        self.on_file(principal, move |files, principal, name| {
            let (vectors, _) = files.vectors(&name, &texts)?;
            files.folder.replace(&name, &lines(&vectors)).map_err(unwritten)?;
            files.lines.insert(principal, vectors.len());
            Ok(())
        })
        .await
    }
}

impl Files {
    /// Reads the vectors of `texts`, and the number of lines. Lines that cannot be parsed are skipped.
    fn vectors(&self, name: &str, texts: &BTreeSet<Digest>) -> Result<(Vec<(Digest, Embedding)>, usize), StoreError> {
        let (mut vectors, mut lines) = (HashMap::new(), 0);
        let read = self.folder.read_lines(name, MAX_LINE, |line| {
            lines += 1;
            let line: Option<VectorLine> = serde_json::from_slice(line).ok();
            let line = line.filter(|line| texts.contains(&line.text));
            vectors.extend(line.and_then(|line| Some((line.text, vector(&line.vector)?))));
        });
        match read {
            Err(error) if error.is_damage() => {
                let moved = self.folder.quarantine(name).map_err(unwritten)?;
                tracing::warn!(name, quarantined_as = moved, %error, "vectors of memories are asked for again");
                Ok((Vec::new(), 0))
            }
            Err(error) => Err(failed("the vectors of memories cannot be read", error)),
            Ok(_) => Ok((vectors.into_iter().collect(), lines)),
        }
    }
}

fn unwritten(error: FileError) -> StoreError {
    failed("the vectors of memories cannot be written", error)
}

fn lines(vectors: &[(Digest, Embedding)]) -> Vec<u8> {
    let mut lines = Vec::new();
    for (text, vector) in vectors {
        let vector = STANDARD.encode(vector_bytes::write(vector));
        serde_json::to_writer(&mut lines, &VectorLine { text: *text, vector }).expect("a line is two texts");
        lines.push(b'\n');
    }
    lines
}

fn vector(text: &str) -> Option<Embedding> {
    vector_bytes::read(&STANDARD.decode(text).ok()?)
}

#[cfg(test)]
mod tests {
    use rockbot_core::testing::conformance;

    use super::*;

    #[tokio::test]
    async fn keeps_the_promises_of_a_vector_cache() {
        let folders = std::cell::RefCell::new(Vec::new());
        conformance::vector_cache(async || {
            let folder = tempfile::tempdir().unwrap();
            let cache = FileVectorCache::open(folder.path().join("vectors")).unwrap();
            folders.borrow_mut().push(folder);
            cache
        })
        .await;
    }
}
