//! Merges memories that say nearly the same into one view. The view must say all that its sources
//! say.

use std::collections::BTreeMap;
use std::sync::Arc;

use rockbot_core::Digest;
use rockbot_core::content::Provenance;
use rockbot_core::store::{MemoryEntry, StoreError};
use rockbot_core::trust::Label;
use rockbot_store::kit::blocking;
use serde::Deserialize;

use super::super::ask::{Item, Question, is_shown_in_full};
use super::super::clusters::{Cluster, clusters};
use super::super::coverage::{Vocabulary, missing};
use super::super::pass_context::{PassContext, bounded, category, tags};
use super::super::plan::DreamChange;

/// Part of its words that a memory of a cluster shares with another memory.
const SIMILARITY: f64 = 0.5;

const SHAPE: &str = "Answer with one JSON object and nothing else: {\"toSave\": [{\"content\": \"the merged text\", \
    \"category\": \"a/path\", \"tags\": [\"a\", \"few\"], \"sourceIds\": [\"id\", \"id\"]}]}. `sourceIds` are the memories \
    whose facts the text has, two at least. Leave the list empty if nothing is to be merged.";

/// The answer of the model, in the form of the original.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Merges {
    #[serde(default)]
    to_save: Vec<Merge>,
    /// The memories that the model would delete. A dream deletes nothing.
    #[serde(default)]
    to_delete: Vec<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Merge {
    content: String,
    #[serde(default)]
    category: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    source_ids: Vec<String>,
}

pub(super) async fn run(cx: &mut PassContext<'_>) -> Result<(), StoreError> {
    let mut entries = cx.live_memories().await?;
    entries.retain(|entry| is_shown_in_full(&entry.content));
    let near = cx.near(&entries).await?;
    let found = blocking(move || {
        let vocabulary = Vocabulary::of(entries.iter().map(|entry| entry.content.as_str()));
        Ok((clusters(&entries, SIMILARITY, &near), vocabulary))
    });
    let (clusters, vocabulary) = found.await?;
    for cluster in clusters {
        let Some((digest, merges)) = cx.ask::<Merges>(&question(&cluster)).await else {
            continue;
        };
        if !merges.to_delete.is_empty() {
            let count = merges.to_delete.len();
            cx.remark(format!(
                "the model would delete {count} memories; a dream deletes nothing"
            ));
        }
        // A memory goes into one view alone.
        let mut left = cluster;
        for merge in merges.to_save {
            if let Err(problem) = merged(cx, &mut left, merge, digest, &vocabulary) {
                cx.remark(format!("a merge was rejected: {problem}"));
            }
        }
    }
    Ok(())
}

/// Returns a question about similar memories.
fn question(cluster: &Cluster) -> Question {
    let item = |entry: &Arc<MemoryEntry>| Item {
        id: entry.id.to_string(),
        text: entry.content.clone(),
        from: entry.provenance.clone(),
    };
    Question {
        intro: "The memories".to_owned(),
        items: cluster.iter().map(item).collect(),
        shape: SHAPE,
    }
}

/// Drafts the plan of one merge, and takes its sources out of `left`.
fn merged(
    cx: &mut PassContext<'_>,
    left: &mut Cluster,
    merge: Merge,
    question: Digest,
    vocabulary: &Vocabulary,
) -> Result<(), String> {
    let content = bounded(&merge.content).ok_or("its text is empty or too long")?;
    let is_source = |entry: &Arc<MemoryEntry>| merge.source_ids.iter().any(|id| id == entry.id.as_str());
    let sources: Vec<_> = left.iter().filter(|entry| is_source(entry)).cloned().collect();
    if sources.len() < 2 || merge.source_ids.len() != sources.len() {
        return Err("it names a memory that was not shown, one twice, or fewer than two".to_owned());
    }
    let lost: Vec<_> = sources
        .iter()
        .flat_map(|source| missing(&source.content, content, vocabulary))
        .collect();
    if !lost.is_empty() {
        return Err(format!("its text lacks {}", lost.join(", ")));
    }
    let mut view = view(cx, content, &sources);
    view.category =
        category(merge.category.as_deref()).or_else(|| sources.iter().find_map(|entry| entry.category.clone()));
    view.tags = tags(merge.tags);
    let supersede = sources.iter().map(|source| DreamChange::Supersede {
        id: source.id.clone(),
        content: source.content.clone(),
        by: view.id.clone(),
        reason: "its facts stand in the merged text".to_owned(),
    });
    let supersede: Vec<_> = supersede.collect();
    let add = DreamChange::AddMemory {
        entry: Box::new(view),
        reason: format!("says what {} memories say", sources.len()),
    };
    let changes = std::iter::once(add).chain(supersede).collect();
    left.retain(|entry| !is_source(entry));
    cx.draft(format!("merge {} memories", sources.len()), changes, Some(question));
    Ok(())
}

/// Creates the view of merged memories. The host computes its numbers, not the model.
fn view(cx: &PassContext<'_>, content: &str, sources: &[Arc<MemoryEntry>]) -> MemoryEntry {
    let mut label = Label::HOST;
    sources.iter().for_each(|source| label.join(&source.provenance.label()));
    let ids: Vec<_> = sources.iter().map(|source| source.id.to_string()).collect();
    let newest = sources.iter().map(|source| source.last_seen()).max().unwrap_or(cx.now);
    let mut view = cx.view(content, &label, &ids, newest);
    if let Some(same) = same_author(sources) {
        view.provenance = same;
    }
    view.created_at = sources.iter().map(|source| source.created_at).min().unwrap_or(cx.now);
    view.last_seen_at = Some(newest);
    view.updated_at = Some(cx.now);
    view.reinforcement_count = sources
        .iter()
        .fold(0_u32, |sum, source| sum.saturating_add(source.reinforcement_count));
    view.importance_score = sources.iter().map(|source| source.importance_score).fold(0.0, f64::max);
    view.metadata.extend(common_metadata(sources));
    view
}

/// Returns the author of all sources, if all have the same author.
fn same_author(sources: &[Arc<MemoryEntry>]) -> Option<Provenance> {
    let first = &sources.first()?.provenance;
    sources
        .iter()
        .all(|source| source.provenance == *first)
        .then(|| first.clone())
}

/// Returns the properties that all sources have alike, without the properties of views.
fn common_metadata(sources: &[Arc<MemoryEntry>]) -> BTreeMap<String, String> {
    let mut common = sources
        .first()
        .map(|source| source.metadata.clone())
        .unwrap_or_default();
    let own = [
        super::super::pass_context::VIEW,
        super::super::pass_context::SOURCES,
        "validFrom",
    ];
    common.retain(|name, value| {
        !own.contains(&name.as_str()) && sources.iter().all(|source| source.metadata.get(name) == Some(value))
    });
    common
}
