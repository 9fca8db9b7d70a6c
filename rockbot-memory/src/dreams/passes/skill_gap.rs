//! Writes skills for work that came up in several conversations without a skill.

use std::collections::BTreeSet;
use std::sync::Arc;

use rockbot_core::content::Provenance;
use rockbot_core::store::{LogEntry, Skill, StoreError, StorePath};
use serde::Deserialize;

use super::super::ask::{Item, Question};
use super::super::pass_context::{PassContext, bounded};
use super::super::plan::DreamChange;
use super::log::{MAX_ENTRIES, Said};

/// Minimum number of conversations that show a pattern.
const MIN_SESSIONS: usize = 2;

/// Maximum number of skills of one answer.
const MAX_SKILLS: usize = 3;

/// Maximum number of known skills that are shown.
const MAX_KNOWN: usize = 200;

const SHAPE: &str = "Answer with one JSON object and nothing else: {\"toSave\": [{\"name\": \"a/short-name\", \"summary\": \"at \
    most 15 words\", \"content\": \"the procedure, as Markdown\", \"sourceIds\": [\"id\", \"id\"]}]}. `sourceIds` are the \
    messages that ask for such work, of two conversations at least. Leave the list empty if there is none.";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Gaps {
    #[serde(default)]
    to_save: Vec<Gap>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Gap {
    name: String,
    #[serde(default)]
    summary: String,
    content: String,
    #[serde(default)]
    source_ids: Vec<String>,
}

pub(super) async fn run(cx: &mut PassContext<'_>) -> Result<(), StoreError> {
    let Some(skills) = cx.stores.skills.clone() else {
        return Ok(());
    };
    let Some(mut said) = Said::since_last_time(cx, MAX_ENTRIES).await? else {
        return Ok(());
    };
    let mut seen = BTreeSet::new();
    said.messages.retain(|entry| seen.insert(entry.session_id.clone()));
    if said.messages.len() < MIN_SESSIONS {
        // The messages stay unread until there are further messages to compare them with, as long
        // as there is room.
        if said.is_full {
            said.read(cx);
        }
        return Ok(());
    }
    let known = skills.list(cx.who).await?;
    let question = question(&said, &known);
    if let Some((digest, gaps)) = cx.ask::<Gaps>(&question).await {
        for gap in gaps.to_save.into_iter().take(MAX_SKILLS) {
            match skill(cx, &question, &said.messages, &known, &gap) {
                Ok(skill) => {
                    let change = DreamChange::Skill {
                        before: None,
                        after: Box::new(skill),
                        reason: format!("asked for in {}", gap.source_ids.join(", ")),
                    };
                    cx.draft(format!("add the skill `{}`", gap.name), vec![change], Some(digest));
                }
                Err(problem) => cx.remark(format!("a skill was rejected: {problem}")),
            }
        }
        said.read(cx);
    } else {
        said.go_on(cx);
    }
    Ok(())
}

/// Returns the question: the messages, and the skills that the agent has.
fn question(said: &Said, known: &[Arc<Skill>]) -> Question {
    let mut items = said.items();
    let live = known.iter().filter(|skill| skill.is_live());
    items.extend(live.take(MAX_KNOWN).map(|skill| Item {
        id: skill.name.to_string(),
        text: format!("(a skill) {}", skill.summary),
        from: skill.provenance.clone(),
    }));
    Question {
        intro: "The first messages of conversations, and the skills".to_owned(),
        items,
        shape: SHAPE,
    }
}

fn skill(
    cx: &PassContext<'_>,
    question: &Question,
    messages: &[LogEntry],
    known: &[Arc<Skill>],
    gap: &Gap,
) -> Result<Skill, String> {
    let name = StorePath::new(gap.name.trim()).map_err(|error| error.to_string())?;
    if known.iter().any(|skill| skill.name == name) {
        return Err(format!("there is a skill `{name}`, or was one"));
    }
    let content = bounded(&gap.content).ok_or("its text is empty or too long")?;
    let label = question
        .label_of(&gap.source_ids)
        .ok_or("it names a text that was not shown, or none")?;
    let sessions = messages
        .iter()
        .zip(&question.items)
        .filter(|(_, item)| gap.source_ids.contains(&item.id));
    if sessions.count() < MIN_SESSIONS {
        return Err("it does not name messages of two conversations".to_owned());
    }
    let summary: String = gap.summary.trim().chars().take(200).collect();
    let skill = Skill::new(name, content, cx.now, Provenance::labelled("dream", &label));
    Ok(skill.with_summary(summary))
}
