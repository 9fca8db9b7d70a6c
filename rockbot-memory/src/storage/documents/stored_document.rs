//! A document as it stands in its file.

use std::sync::Arc;
use std::time::SystemTime;

use rockbot_core::files::{Found, without_bom};
use serde_json::{Map, Value};

use super::document::{Document, Members, timestamp};

/// A document, and what another program or a person wrote beside it.
#[derive(Debug)]
pub(super) struct StoredDocument<D> {
    pub(super) document: Arc<D>,
    /// Members that we do not know. They are kept, and decide nothing.
    pub(super) other: Map<String, Value>,
    /// As what the file was read; `None` when we wrote it and nobody has scanned since.
    pub(super) version: Option<FileVersion>,
}

/// What tells a file from what it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileVersion {
    pub(super) modified: Option<SystemTime>,
    len: u64,
}

impl From<&Found> for FileVersion {
    fn from(found: &Found) -> Self {
        Self {
            modified: found.modified,
            len: found.len,
        }
    }
}

impl<D: Document> StoredDocument<D> {
    /// Reads a file. `stem` is its name without the owner's folder and the ending.
    pub(super) fn parse(json: &[u8], stem: &str, version: FileVersion) -> serde_json::Result<Self> {
        let mut other: Map<String, Value> = serde_json::from_slice(without_bom(json))?;
        let mut members = Map::new();
        for name in D::MEMBERS {
            // Other programs write `null` for what is not there.
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

    pub(super) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec_pretty(&Members {
            document: &*self.document,
            other: &self.other,
        })
    }

    pub(super) fn has_same_content_as(&self, other: &Self) -> bool {
        self.document == other.document && self.other == other.other
    }

    /// The greater, the newer.
    pub(super) fn age(&self) -> (bool, Option<SystemTime>) {
        (
            self.version.is_none(),
            self.version.and_then(|version| version.modified),
        )
    }
}
