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
/// The folder is this value's alone, so a file is read again only for vectors that it has.
#[derive(Debug, Clone)]
pub struct FileVectorCache(Arc<Mutex<Files>>);

#[derive(Debug)]
struct Files {
    folder: DataFolder,
    /// The texts of each file that was read.
    texts: HashMap<Principal, HashSet<Digest>>,
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
            texts: HashMap::new(),
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
        let wanted: BTreeSet<_> = texts.iter().copied().collect();
        self.on_file(principal, move |files, principal, name| {
            if let Some(known) = files.texts.get(&principal)
                && !wanted.iter().any(|text| known.contains(text))
            {
                return Ok(Vec::new());
            }
            let read = files.read(&name, |text| wanted.contains(text))?;
            files.lines.insert(principal.clone(), read.lines);
            files.texts.insert(principal, read.texts);
            Ok(read.vectors)
        })
        .await
    }

    async fn add(&self, principal: &Principal, vectors: &[(Digest, Embedding)]) -> Result<usize, StoreError> {
        let (added, count) = (lines(vectors), vectors.len());
        let texts: Vec<_> = vectors.iter().map(|(text, _)| *text).collect();
        self.on_file(principal, move |files, principal, name| {
            let mut file = files.folder.lines(&name).map_err(unwritten)?;
            file.append(&added).map_err(unwritten)?;
            if let Some(known) = files.texts.get_mut(&principal) {
                known.extend(texts);
            }
            let lines = files.lines.entry(principal).or_default();
            *lines += count;
            Ok(*lines)
        })
        .await
    }

    async fn retain(&self, principal: &Principal, texts: &[Digest]) -> Result<(), StoreError> {
        let texts: BTreeSet<_> = texts.iter().copied().collect();
        self.on_file(principal, move |files, principal, name| {
            let kept = files.read(&name, |text| texts.contains(text))?.vectors;
            files.folder.replace(&name, &lines(&kept)).map_err(unwritten)?;
            files.lines.insert(principal.clone(), kept.len());
            let texts = kept.iter().map(|(text, _)| *text).collect();
            files.texts.insert(principal, texts);
            Ok(())
        })
        .await
    }
}

/// The content of a file, without lines that cannot be parsed.
#[derive(Debug, Default)]
struct ReadVectors {
    vectors: Vec<(Digest, Embedding)>,
    /// The texts of all vectors.
    texts: HashSet<Digest>,
    /// Number of lines, unreadable ones included.
    lines: usize,
}

impl Files {
    /// Reads the vectors of the texts that `is_wanted` selects.
    fn read(&self, name: &str, is_wanted: impl Fn(&Digest) -> bool) -> Result<ReadVectors, StoreError> {
        let (mut vectors, mut read) = (HashMap::new(), ReadVectors::default());
        let ended = self.folder.read_lines(name, MAX_LINE, |line| {
            read.lines += 1;
            let Some(VectorLine { text, vector }) = serde_json::from_slice(line).ok() else {
                return;
            };
            read.texts.insert(text);
            if is_wanted(&text) {
                vectors.extend(decoded(&vector).map(|vector| (text, vector)));
            }
        });
        match ended {
            Err(error) if error.is_damage() => {
                let moved = self.folder.quarantine(name).map_err(unwritten)?;
                tracing::warn!(name, quarantined_as = moved, %error, "vectors of memories are asked for again");
                return Ok(ReadVectors::default());
            }
            ended => ended.map_err(|error| failed("the vectors of memories cannot be read", error))?,
        };
        read.vectors = vectors.into_iter().collect();
        Ok(read)
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

fn decoded(text: &str) -> Option<Embedding> {
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
