//! Finds statements of one speaker that contradict each other. The newer statement takes the
//! place of the older statement, and memories that rest on the older statement are marked as stale.

use std::sync::Arc;

use rockbot_core::Timestamp;
use rockbot_core::store::{MemoryEntry, StoreError};
use rockbot_store::kit::blocking;
use serde::Deserialize;

use super::super::ask::{Item, Question};
use super::super::clusters::{Cluster, clusters, of_one_name};
use super::super::pass_context::{PassContext, is_made_of};
use super::super::plan::DreamChange;
use super::super::times::date;
use crate::stale::{is_stale, marked};

/// Part of its words that a memory shares with another memory. The part is low: `lives in Oslo`
/// and `lives in Rome` share half.
const SIMILARITY: f64 = 0.3;

const SHAPE: &str = "Answer with one JSON object and nothing else: {\"contradictions\": [{\"ids\": [\"id\", \"id\"], \
    \"reason\": \"a few words\"}], \"stale\": [{\"id\": \"id\", \"restsOn\": \"id\"}]}. Each contradiction names two memories that \
    cannot both be true now. Each stale memory follows from another one, `restsOn`, which is no longer true. Leave a list \
    empty if there is none.";

#[derive(Debug, Deserialize)]
struct Found {
    #[serde(default)]
    contradictions: Vec<Contradiction>,
    #[serde(default)]
    stale: Vec<Stale>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stale {
    id: String,
    rests_on: String,
}

#[derive(Debug, Deserialize)]
struct Contradiction {
    ids: Vec<String>,
    #[serde(default)]
    reason: String,
}

pub(super) async fn run(cx: &mut PassContext<'_>) -> Result<(), StoreError> {
    let entries = cx.live_memories().await?;
    let compared = entries.clone();
    let mut near = cx.near(&entries).await?;
    let found = blocking(move || {
        near.extend(of_one_name(&compared));
        Ok(clusters(&compared, SIMILARITY, &near))
    });
    for cluster in found.await? {
        let Some((digest, found)) = cx.ask::<Found>(&question(&cluster)).await else {
            continue;
        };
        let mut superseded: Vec<String> = Vec::new();
        for contradiction in found.contradictions.iter().take(cluster.len()) {
            match decided(&cluster, contradiction) {
                Ok((older, newer))
                    if superseded
                        .iter()
                        .all(|id| id != older.id.as_str() && id != newer.id.as_str()) =>
                {
                    superseded.push(older.id.to_string());
                    let (summary, change) = change(older, newer, &contradiction.reason);
                    let marks = marks(&entries, (&cluster, &found.stale), (older, newer), cx.now);
                    let changes = std::iter::once(change).chain(marks).collect();
                    cx.draft(summary, changes, Some(digest));
                }
                Ok(_) => {}
                Err(problem) => cx.remark(format!("a contradiction was rejected: {problem}")),
            }
        }
    }
    Ok(())
}

fn question(cluster: &Cluster) -> Question {
    let item = |entry: &Arc<MemoryEntry>| Item {
        id: entry.id.to_string(),
        // The date and not the age: the question stays the same tomorrow.
        text: format!("(learned {}) {}", date(entry.last_seen()), entry.content),
        from: entry.provenance.clone(),
    };
    Question {
        intro: "The memories".to_owned(),
        items: cluster.iter().map(item).collect(),
        shape: SHAPE,
    }
}

/// Returns the older and the newer memory. The host decides by its own times, not the model.
fn decided<'a>(
    cluster: &'a Cluster,
    found: &Contradiction,
) -> Result<(&'a Arc<MemoryEntry>, &'a Arc<MemoryEntry>), String> {
    let [a, b] = found.ids.as_slice() else {
        return Err("it does not name two memories".to_owned());
    };
    let find = |id: &str| cluster.iter().find(|entry| entry.id.as_str() == id);
    let (Some(a), Some(b)) = (find(a), find(b)) else {
        return Err("it names a memory that was not shown".to_owned());
    };
    if a.provenance != b.provenance {
        return Err(format!("`{}` and `{}` are of different speakers", a.id, b.id));
    }
    match a.last_seen().cmp(&b.last_seen()) {
        std::cmp::Ordering::Less => Ok((a, b)),
        std::cmp::Ordering::Greater => Ok((b, a)),
        std::cmp::Ordering::Equal => Err(format!("`{}` and `{}` are of the same time", a.id, b.id)),
    }
}

fn change(older: &MemoryEntry, newer: &MemoryEntry, reason: &str) -> (String, DreamChange) {
    let reason: String = reason.chars().take(200).collect();
    let change = DreamChange::Supersede {
        id: older.id.clone(),
        content: older.content.clone(),
        by: newer.id.clone(),
        reason: format!("contradicts \"{}\": {reason}", newer.content),
    };
    (format!("\"{}\" is out of date", older.content), change)
}

/// Returns the marks of memories that rest on `older`: views that were made of it, and the memories
/// that the model names, if the same speaker said them and not again since `newer`.
fn marks(
    entries: &[Arc<MemoryEntry>],
    (cluster, stale): (&Cluster, &[Stale]),
    (older, newer): (&MemoryEntry, &MemoryEntry),
    now: Timestamp,
) -> Vec<DreamChange> {
    let named = |entry: &MemoryEntry| {
        let is_named = |stale: &Stale| stale.id == entry.id.as_str() && stale.rests_on == older.id.as_str();
        let is_of_speaker = entry.provenance == older.provenance && entry.last_seen() < newer.last_seen();
        is_of_speaker && stale.iter().any(is_named) && cluster.iter().any(|shown| shown.id == entry.id)
    };
    let rests = |entry: &&Arc<MemoryEntry>| {
        let is_other = entry.id != older.id && entry.id != newer.id;
        is_other && !is_stale(entry) && (is_made_of(entry, &older.id) || named(entry))
    };
    let mark = |entry: &Arc<MemoryEntry>| DreamChange::MarkStale {
        before: Box::new((**entry).clone()),
        after: Box::new(marked(entry, &older.id, now)),
        reason: format!("rests on \"{}\"", older.content),
    };
    entries.iter().filter(rests).map(mark).collect()
}
