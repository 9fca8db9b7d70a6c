//! [`Skill`] as a document: `{name}.json`, whose name may be nested.

use rockbot_core::Timestamp;
use rockbot_core::files::IdTooLong;
use rockbot_core::store::{Skill, StorePath};
use serde_json::{Map, Value};

use super::document::{Document, moment};
use crate::storage::path::{decode_path, encode_path};

impl Document for Skill {
    type Key = StorePath;

    const WHAT: &'static str = "skill";

    const MEMBERS: &'static [&'static str] = &[
        "name",
        "summary",
        "content",
        "createdAt",
        "updatedAt",
        "lastUsedAt",
        "archivedAt",
        "seeAlso",
        "metadata",
        "provenance",
        "versions",
    ];

    fn key(&self) -> StorePath {
        self.name.clone()
    }

    fn stem(&self) -> Result<String, IdTooLong> {
        encode_path(&self.name)
    }

    fn stays_with(&self, _before: &Self) -> bool {
        true
    }

    fn complete(members: &mut Map<String, Value>, stem: &str, modified: Timestamp) {
        members.insert("name".into(), decode_path(stem).into());
        members.entry("createdAt").or_insert_with(|| moment(modified));
    }

    fn searched_text(&self) -> Option<String> {
        Some(Self::searched_text(self))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rockbot_core::chat::Provenance;

    use super::*;

    #[test]
    fn every_member_is_known() {
        let name = StorePath::new("a").unwrap();
        let before = Skill::new(name.clone(), String::new(), Timestamp::default(), Provenance::MODEL);
        let skill = before
            .clone()
            .replacing(&before)
            .with_updated_at(Timestamp::default())
            .with_last_used_at(Timestamp::default())
            .with_archived_at(Timestamp::default())
            .with_see_also(vec![name])
            .with_metadata([("license".to_owned(), "MIT".to_owned())].into());
        let Value::Object(members) = serde_json::to_value(skill).unwrap() else {
            unreachable!("a skill is an object")
        };
        let written: BTreeSet<_> = members.keys().map(String::as_str).collect();
        assert_eq!(written, Skill::MEMBERS.iter().copied().collect());
    }
}
