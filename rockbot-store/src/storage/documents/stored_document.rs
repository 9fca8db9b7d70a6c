//! A document together with the additions of its file: unknown members and the file's version.

use std::sync::Arc;
use std::time::SystemTime;

use rockbot_core::files::{FileEntry, without_bom};
use serde_json::{Map, Value};

use super::document::{Document, Members, timestamp};

/// A document, the unknown members beside it, and the version of the file that it was read from.
#[derive(Debug)]
pub(super) struct StoredDocument<D> {
    pub(super) document: Arc<D>,
    /// Members that the type does not have. They are written back unchanged, and have no effect.
    pub(super) other: Map<String, Value>,
    /// The version of the file when it was read; `None` if this process wrote it and has not
    /// rescanned since.
    pub(super) version: Option<FileVersion>,
}

/// The modification time and size of a file, which show that it has changed.
///
/// An edit that keeps both, within the resolution of the file system's clock, is missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileVersion {
    pub(super) modified: Option<SystemTime>,
    len: u64,
}

impl From<&FileEntry> for FileVersion {
    fn from(found: &FileEntry) -> Self {
        Self {
            modified: found.modified,
            len: found.len,
        }
    }
}

impl<D: Document> StoredDocument<D> {
    /// Parses the content of a file. `stem` is its path without the principal's folder and the
    /// extension.
    pub(super) fn parse(json: &[u8], stem: &str, version: FileVersion) -> serde_json::Result<Self> {
        let mut other: Map<String, Value> = serde_json::from_slice(without_bom(json))?;
        let mut members = Map::new();
        for name in D::MEMBERS {
            // Other programs write `null` for an absent member.
            let member = other.remove(*name).filter(|member| !member.is_null());
            members.extend(member.map(|member| ((*name).to_owned(), member)));
        }
        D::complete(&mut members, stem, timestamp(version.modified));
        Ok(Self {
            document: serde_json::from_value(Value::Object(members))?,
            other,
            version: Some(version),
        })
    }

    /// Serializes the document with its unknown members.
    pub(super) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec_pretty(&Members {
            document: &*self.document,
            other: &self.other,
        })
    }

    /// Returns `true` if both have the same document and the same unknown members, whatever their
    /// versions.
    pub(super) fn has_same_content_as(&self, other: &Self) -> bool {
        self.document == other.document && self.other == other.other
    }

    /// Returns the sort key of copies, the newest last. A file that this process just wrote is the
    /// newest.
    pub(super) fn age(&self) -> (bool, Option<SystemTime>) {
        (
            self.version.is_none(),
            self.version.and_then(|version| version.modified),
        )
    }
}
