//! New memories that a model infers: the part that several passes share.

use std::collections::BTreeMap;
use std::sync::Arc;

use rockbot_core::Digest;
use rockbot_core::store::{MemoryEntry, StoreError};
use serde::Deserialize;

use super::super::ask::Question;
use super::super::coverage::{Vocabulary, made_up, telling};
use super::super::pass_context::{PassContext, bounded, category, tags};
use super::super::plan::DreamChange;

/// Maximum number of new facts of one answer.
const MAX_FACTS: usize = 20;

/// Maximum number of facts of one answer that are looked at.
const MAX_READ: usize = 200;

/// The form of the answer.
pub(super) const SHAPE: &str = "Answer with one JSON object and nothing else: {\"toSave\": [{\"content\": \"one fact, in one or \
    two sentences\", \"category\": \"a/path\", \"tags\": [\"a\", \"few\"], \"sourceIds\": [\"id\"]}]}. `sourceIds` are the \
    texts that show the fact. Leave the list empty if there is none.";

/// The answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Facts {
    #[serde(default)]
    to_save: Vec<Fact>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fact {
    content: String,
    #[serde(default)]
    category: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    source_ids: Vec<String>,
}

/// The category, the tag and the check of the facts that a pass infers.
pub(super) struct Filing {
    /// Category of the facts: subcategories that the model names are kept.
    pub(super) category: &'static str,
    /// Tag of each fact.
    pub(super) tag: &'static str,
    /// Minimum number of sources of a fact.
    pub(super) min_sources: usize,
}

/// Drafts one plan that adds the unknown facts of an answer.
pub(super) async fn add(
    cx: &mut PassContext<'_>,
    question: &Question,
    (digest, facts): (Digest, Facts),
    filing: &Filing,
) -> Result<(), StoreError> {
    let known = cx.stores.memories(cx.who).await?;
    let mut changes: Vec<DreamChange> = Vec::new();
    // Facts that are known do not count: a model that repeats them has room for the others.
    for fact in facts.to_save.into_iter().take(MAX_READ) {
        if changes.len() == MAX_FACTS {
            break;
        }
        match view(cx, question, fact, filing) {
            Ok(view) if is_known(&known, &changes, &view) => {}
            Ok(view) if is_removed(&known, &view) => {
                cx.remark("a fact was left out: a memory with its names is archived");
            }
            Ok(view) => changes.push(DreamChange::AddMemory {
                reason: format!("from {}", view.metadata.get("sources").map_or("", String::as_str)),
                entry: Box::new(view),
            }),
            Err(problem) => cx.remark(format!("a fact was rejected: {problem}")),
        }
    }
    cx.draft(format!("add {} memories", changes.len()), changes, Some(digest));
    Ok(())
}

fn view(cx: &PassContext<'_>, question: &Question, fact: Fact, filing: &Filing) -> Result<MemoryEntry, String> {
    let content = bounded(&fact.content).ok_or("its text is empty or too long")?;
    let label = question
        .label_of(&fact.source_ids)
        .ok_or("it names a text that was not shown, or none")?;
    if fact.source_ids.len() < filing.min_sources {
        return Err(format!("it has fewer than {} sources", filing.min_sources));
    }
    let shown = question.items.iter().filter(|item| fact.source_ids.contains(&item.id));
    let made_up = made_up(content, shown.map(|item| item.text.as_str()));
    if !made_up.is_empty() {
        return Err(format!("its sources lack {}", made_up.join(", ")));
    }
    let mut view = cx.view(content, &label, &fact.source_ids, cx.now);
    let named = category(fact.category.as_deref());
    let own = category(Some(filing.category));
    let is_own = |named: &rockbot_core::store::StorePath| own.as_ref().is_none_or(|own| named.is_within(own));
    view.category = named.filter(is_own).or(own);
    view.tags = tags(fact.tags);
    view.tags.push(filing.tag.to_owned());
    view.metadata
        .extend(BTreeMap::from([("source".to_owned(), "inferred".to_owned())]));
    Ok(view)
}

/// Returns `true` if a memory states the fact already, or an archived memory stated it: a person
/// may have removed the fact.
fn is_known(known: &[Arc<MemoryEntry>], changes: &[DreamChange], view: &MemoryEntry) -> bool {
    let is_drafted = |change: &DreamChange| match change {
        DreamChange::AddMemory { entry, .. } => entry.says_the_same_as(view),
        _ => false,
    };
    known.iter().any(|entry| entry.has_words_of(&view.content)) || changes.iter().any(is_drafted)
}

/// Returns `true` if the fact has the names and numbers of an archived memory, two at least: the
/// user may have had the fact forgotten, and messages of that time still state it.
fn is_removed(known: &[Arc<MemoryEntry>], view: &MemoryEntry) -> bool {
    let vocabulary = Vocabulary::of(known.iter().map(|entry| entry.content.as_str()));
    let said = telling(&view.content, &vocabulary);
    let mut archived = known.iter().filter(|entry| entry.archived_at.is_some());
    archived.any(|entry| {
        let names = telling(&entry.content, &vocabulary);
        names.len() >= 2 && names.is_subset(&said)
    })
}
