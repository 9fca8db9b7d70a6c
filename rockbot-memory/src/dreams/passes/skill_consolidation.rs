//! Merges skills that are for the same work.

use std::collections::BTreeMap;
use std::sync::Arc;

use rockbot_core::content::Provenance;
use rockbot_core::store::{MemoryEntry, Skill, StoreError};
use rockbot_core::trust::Label;
use serde::Deserialize;

use super::super::ask::{Item, Question, is_shown_in_full};
use super::super::clusters::{Near, clusters};
use super::super::coverage::{Vocabulary, missing};
use super::super::pass_context::{PassContext, bounded};
use super::super::plan::DreamChange;

/// Part of its words that a skill of a cluster shares with another skill.
const SIMILARITY: f64 = 0.3;

const SHAPE: &str = "Answer with one JSON object and nothing else: {\"toSave\": [{\"name\": \"the name of one of them\", \
    \"summary\": \"at most 15 words\", \"content\": \"the merged procedure, as Markdown\", \"sourceNames\": [\"name\", \
    \"name\"]}]}. Leave the list empty if nothing is to be merged.";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Merges {
    #[serde(default)]
    to_save: Vec<Merge>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Merge {
    name: String,
    #[serde(default)]
    summary: String,
    content: String,
    #[serde(default)]
    source_names: Vec<String>,
}

pub(super) async fn run(cx: &mut PassContext<'_>) -> Result<(), StoreError> {
    let Some(skills) = cx.stores.skills.clone() else {
        return Ok(());
    };
    let all = skills.list(cx.who).await?;
    let own: BTreeMap<_, _> = all
        .iter()
        .filter(|skill| skill.is_live() && !is_managed(skill) && is_shown_in_full(&skill.content))
        .map(|skill| (skill.name.to_string(), skill.clone()))
        .collect();
    let texts: Vec<_> = own.values().map(|skill| Arc::new(as_text(skill))).collect();
    for cluster in clusters(&texts, SIMILARITY, &Near::new()) {
        let sources: Vec<_> = cluster
            .iter()
            .filter_map(|text| own.get(text.id.as_str()).cloned())
            .collect();
        let question = question(&sources);
        let Some((digest, merges)) = cx.ask::<Merges>(&question).await else {
            continue;
        };
        let Some(merge) = merges.to_save.into_iter().next() else {
            continue;
        };
        match merged(cx, &sources, &merge) {
            Ok(changes) => cx.draft(format!("merge skills into `{}`", merge.name), changes, Some(digest)),
            Err(problem) => cx.remark(format!("a merge of skills was rejected: {problem}")),
        }
    }
    Ok(())
}

/// Returns `true` for a skill whose source keeps it up to date: a guide of the host, or a folder of
/// skills.
pub(super) fn is_managed(skill: &Skill) -> bool {
    let source = &skill.provenance.source;
    source.starts_with("guide:") || source.starts_with("skill-folder:")
}

/// Returns the skill as a text that can be compared with other skills.
fn as_text(skill: &Skill) -> MemoryEntry {
    let text = format!("{}\n{}\n{}", skill.name, skill.summary, skill.content);
    MemoryEntry::new(skill.name.to_string(), text, skill.created_at, skill.provenance.clone())
}

fn question(skills: &[Arc<Skill>]) -> Question {
    let item = |skill: &Arc<Skill>| Item {
        id: skill.name.to_string(),
        text: format!("{}\n{}", skill.summary, skill.content),
        from: skill.provenance.clone(),
    };
    Question {
        intro: "The skills".to_owned(),
        items: skills.iter().map(item).collect(),
        shape: SHAPE,
    }
}

fn merged(cx: &PassContext<'_>, skills: &[Arc<Skill>], merge: &Merge) -> Result<Vec<DreamChange>, String> {
    let content = bounded(&merge.content).ok_or("its text is empty or too long")?;
    let is_source = |skill: &&Arc<Skill>| merge.source_names.iter().any(|name| name == skill.name.as_str());
    let sources: Vec<_> = skills.iter().filter(is_source).collect();
    if sources.len() < 2 || sources.len() != merge.source_names.len() {
        return Err("it names a skill that was not shown, one twice, or fewer than two".to_owned());
    }
    let vocabulary = Vocabulary::of(sources.iter().map(|skill| skill.content.as_str()));
    let lost: Vec<_> = sources
        .iter()
        .flat_map(|skill| missing(&skill.content, content, &vocabulary))
        .collect();
    if !lost.is_empty() {
        return Err(format!("its text lacks {}", lost.join(", ")));
    }
    let kept = sources.iter().find(|skill| skill.name.as_str() == merge.name.trim());
    let kept = kept.ok_or("its name is not that of one of its sources")?;
    let mut label = Label::HOST;
    sources.iter().for_each(|skill| label.join(&skill.provenance.label()));
    let summary: String = merge.summary.trim().chars().take(200).collect();
    let after = (***kept)
        .clone()
        .with_content(content)
        .with_summary(summary)
        .with_updated_at(cx.now)
        .with_provenance(Provenance::labelled("dream", &label))
        .replacing(kept);
    let change = DreamChange::Skill {
        before: Some(Box::new((***kept).clone())),
        after: Box::new(after),
        reason: format!("says what {} skills say", sources.len()),
    };
    let others = sources
        .iter()
        .filter(|skill| skill.name != kept.name)
        .map(|skill| DreamChange::Skill {
            before: Some(Box::new((***skill).clone())),
            after: Box::new((***skill).clone().with_archived_at(cx.now)),
            reason: format!("its steps stand in `{}`", kept.name),
        });
    Ok(std::iter::once(change).chain(others).collect())
}
