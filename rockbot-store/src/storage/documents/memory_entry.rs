//! [`MemoryEntry`] as a document: `{category}/{id}.json`, or `{id}.json` without a category.

use rockbot_core::files::{IdTooLong, decode, encode};
use rockbot_core::store::MemoryEntry;
use rockbot_core::{MemoryId, Timestamp};
use serde_json::{Map, Value};

use super::document::{Document, moment};
use crate::storage::path::{decode_path, encode_path, split_last};

impl Document for MemoryEntry {
    type Key = MemoryId;

    const WHAT: &'static str = "memory";

    const MEMBERS: &'static [&'static str] = &[
        "id",
        "content",
        "category",
        "tags",
        "createdAt",
        "updatedAt",
        "metadata",
        "importanceScore",
        "lastSeenAt",
        "reinforcementCount",
        "archivedAt",
        "archiveReason",
        "supersededBy",
        "provenance",
    ];

    fn key(&self) -> MemoryId {
        self.id.clone()
    }

    fn stem(&self) -> Result<String, IdTooLong> {
        let id = encode(self.id.as_str())?;
        Ok(match &self.category {
            Some(category) => format!("{}/{id}", encode_path(category)?),
            None => id,
        })
    }

    fn stays_with(&self, before: &Self) -> bool {
        self.category == before.category
    }

    fn complete(members: &mut Map<String, Value>, stem: &str, modified: Timestamp) {
        let (folder, id) = split_last(stem);
        let id = decode(id).unwrap_or_else(|| id.to_owned());
        members.insert("id".into(), id.into());
        if let Some(folder) = folder {
            members.entry("category").or_insert_with(|| decode_path(folder).into());
        }
        members.entry("createdAt").or_insert_with(|| moment(modified));
    }

    fn searched_text(&self) -> Option<String> {
        self.is_live().then(|| Self::searched_text(self))
    }
}

/// Returns a digest of a memory's wording, short enough for an index column.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) fn wording(entry: &MemoryEntry) -> String {
    rockbot_core::Digest::of([entry.wording()]).short()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rockbot_core::chat::Provenance;
    use rockbot_core::store::StorePath;

    use super::*;

    #[test]
    fn every_member_is_known() {
        let mut entry = MemoryEntry::new("m", "x", Timestamp::default(), Provenance::USER);
        entry.category = StorePath::new("a").ok();
        (entry.updated_at, entry.last_seen_at) = (Some(Timestamp::default()), Some(Timestamp::default()));
        (entry.archived_at, entry.archive_reason) = (Some(Timestamp::default()), Some(String::new()));
        (entry.superseded_by, entry.metadata) = (Some("n".into()), [(String::new(), String::new())].into());
        let Value::Object(members) = serde_json::to_value(entry).unwrap() else {
            unreachable!("an entry is an object")
        };
        let written: BTreeSet<_> = members.keys().map(String::as_str).collect();
        assert_eq!(written, MemoryEntry::MEMBERS.iter().copied().collect());
    }
}
