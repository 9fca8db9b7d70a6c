//! The user's knowledge: memories, skills, rules and working memory, to look at.

use std::sync::Arc;

use axum::Json;
use rockbot_core::Timestamp;
use rockbot_core::chat::Provenance;
use rockbot_core::store::{MemoryEntry, MemoryQuery, Rule, Skill, StorePath, WorkingEntry, WorkingMemoryError};
use serde::{Deserialize, Serialize};

use crate::door::{Caller, UrlPath, UrlQuery};
use crate::error::WebError;
use crate::host_parts::offered;

/// Number of entries that are listed unless a client asks for another, and the maximum.
const LISTED: usize = 50;
const MAX_LISTED: usize = 500;

/// Maximum length of a text of working memory in a list, in bytes. The entry itself has all.
const MAX_SHOWN: usize = 1000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Wanted {
    /// Words to look for. By default the newest entries are listed, or the first ones by name.
    #[serde(default)]
    query: String,
    /// `true` to list archived entries as well.
    #[serde(default)]
    archived: bool,
    limit: Option<usize>,
}

impl Wanted {
    fn limit(&self) -> usize {
        self.limit.unwrap_or(LISTED).min(MAX_LISTED)
    }

    fn has_words(&self) -> bool {
        !self.query.trim().is_empty()
    }
}

#[derive(Serialize)]
pub(super) struct Memories {
    memories: Vec<Arc<MemoryEntry>>,
}

/// Lists the newest memories, or the memories that match a query best.
pub(super) async fn memories(caller: Caller, UrlQuery(wanted): UrlQuery<Wanted>) -> Result<Json<Memories>, WebError> {
    let memory = offered(caller.door.parts.memories.as_ref(), "long-term memory")?;
    let query = MemoryQuery::new(&wanted.query)
        .with_archived(wanted.archived)
        .with_limit(wanted.limit());
    let found = memory.search(&caller.principal, &query).await?;
    let memories = found.into_iter().map(|found| found.item).collect();
    Ok(Json(Memories { memories }))
}

/// A skill in a list, without its instructions.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedSkill {
    name: StorePath,
    summary: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<Timestamp>,
    is_archived: bool,
    provenance: Provenance,
}

#[derive(Serialize)]
pub(super) struct Skills {
    skills: Vec<ListedSkill>,
}

/// Lists the skills by name, or the skills that match a query best.
pub(super) async fn skills(caller: Caller, UrlQuery(wanted): UrlQuery<Wanted>) -> Result<Json<Skills>, WebError> {
    let store = offered(caller.door.parts.skills.as_ref(), "skills")?;
    let mut found = if wanted.has_words() {
        let found = store.search(&caller.principal, &wanted.query, wanted.limit()).await?;
        found.into_iter().map(|found| found.item).collect()
    } else {
        store.list(&caller.principal).await?
    };
    found.retain(|skill| wanted.archived || skill.is_live());
    found.truncate(wanted.limit());
    let listed = |skill: &Arc<Skill>| ListedSkill {
        name: skill.name.clone(),
        summary: skill.summary.clone(),
        updated_at: Some(skill.updated_at.unwrap_or(skill.created_at)),
        is_archived: !skill.is_live(),
        provenance: skill.provenance.clone(),
    };
    Ok(Json(Skills {
        skills: found.iter().map(listed).collect(),
    }))
}

/// Returns a skill with its instructions and the texts that they replaced.
pub(super) async fn skill(caller: Caller, UrlPath(name): UrlPath<StorePath>) -> Result<Json<Arc<Skill>>, WebError> {
    let store = offered(caller.door.parts.skills.as_ref(), "skills")?;
    let skill = store.get(&caller.principal, &name).await?;
    let missing = || WebError::not_found(format!("there is no skill `{name}`"));
    Ok(Json(skill.ok_or_else(missing)?))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rules {
    rules: Vec<Rule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
}

/// Lists the standing rules of the user, with the time zone.
pub(super) async fn rules(caller: Caller) -> Result<Json<Rules>, WebError> {
    let store = offered(caller.door.parts.rules.as_ref(), "rules")?;
    Ok(Json(Rules {
        rules: store.list(&caller.principal).await?,
        time_zone: store.time_zone(&caller.principal).await?,
    }))
}

/// An entry of working memory in a list, with the beginning of its text.
#[derive(Serialize)]
struct ListedNote {
    #[serde(flatten)]
    entry: WorkingEntry,
    /// Length of the whole text, in bytes.
    length: usize,
}

#[derive(Serialize)]
pub(super) struct Notes {
    entries: Vec<ListedNote>,
}

/// Lists the entries of working memory by key, or the entries that match a query best.
pub(super) async fn notes(caller: Caller, UrlQuery(wanted): UrlQuery<Wanted>) -> Result<Json<Notes>, WebError> {
    let memory = offered(caller.door.parts.working.as_ref(), "working memory")?;
    let entries = if wanted.has_words() {
        let found = memory.search(&caller.principal, None, &wanted.query, wanted.limit());
        found.await?.into_iter().map(|found| found.item).collect()
    } else {
        memory.list(&caller.principal, None).await?
    };
    let listed = |entry: &Arc<WorkingEntry>| {
        let mut shown = (**entry).clone();
        shown.value.truncate(shown.value.floor_char_boundary(MAX_SHOWN));
        ListedNote {
            entry: shown,
            length: entry.value.len(),
        }
    };
    Ok(Json(Notes {
        entries: entries.iter().take(wanted.limit()).map(listed).collect(),
    }))
}

/// Returns an entry of working memory with its whole text.
pub(super) async fn note(
    caller: Caller,
    UrlPath(key): UrlPath<StorePath>,
) -> Result<Json<Arc<WorkingEntry>>, WebError> {
    let memory = offered(caller.door.parts.working.as_ref(), "working memory")?;
    let entry = memory.get(&caller.principal, &key).await?;
    let missing = || WebError::not_found(format!("there is no entry `{key}`, or it has expired"));
    Ok(Json(entry.ok_or_else(missing)?))
}

impl From<WorkingMemoryError> for WebError {
    fn from(error: WorkingMemoryError) -> Self {
        match error {
            WorkingMemoryError::Store(error) => error.into(),
            error => Self::internal(&error),
        }
    }
}
