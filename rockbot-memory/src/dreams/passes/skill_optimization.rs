//! Improves skills that were used in sessions which went badly.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::content::Provenance;
use rockbot_core::store::{FeedbackEntry, FeedbackSignal, Skill, StoreError};
use rockbot_core::{SessionId, Timestamp};
use serde::Deserialize;

use super::super::ask::{Item, Question, is_shown_in_full};
use super::super::coverage::{Vocabulary, missing};
use super::super::pass_context::{PassContext, bounded};
use super::super::plan::DreamChange;
use super::anti_patterns::{feedback, item};
use super::skill_consolidation::is_managed;
use crate::evaluation::{Quality, SessionSummary};

/// Time for which sessions are looked at.
const SINCE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Maximum number of uses that are read, the newest uses.
const MAX_USES: usize = 10_000;

/// Maximum number of skills of one cycle.
const MAX_SKILLS: usize = 5;

/// Maximum number of problems that are shown with a skill.
const MAX_PROBLEMS: usize = 20;

const SHAPE: &str = "Answer with one JSON object and nothing else: {\"content\": \"the whole improved skill, as Markdown\"}, or \
    {} if nothing is to be changed.";

#[derive(Debug, Deserialize)]
struct Improved {
    #[serde(default)]
    content: Option<String>,
}

pub(super) async fn run(cx: &mut PassContext<'_>) -> Result<(), StoreError> {
    let (Some(skills), Some(usage)) = (cx.stores.skills.clone(), cx.stores.usage.clone()) else {
        return Ok(());
    };
    let signals = feedback(cx, SINCE).await?;
    let bad: BTreeSet<_> = signals
        .iter()
        .filter(|signal| is_bad(signal))
        .map(|signal| &signal.session_id)
        .collect();
    let millis = cx.now.as_millis().saturating_sub(SINCE.as_millis() as u64);
    let uses = usage
        .query_recent(cx.who, Timestamp::from_millis(millis), MAX_USES)
        .await?;
    let mut at_risk: BTreeMap<_, BTreeSet<SessionId>> = BTreeMap::new();
    for used in uses.into_iter().filter(|used| bad.contains(&used.session_id)) {
        at_risk.entry(used.skill_name).or_default().insert(used.session_id);
    }
    let mut at_risk: Vec<_> = at_risk.into_iter().collect();
    at_risk.sort_by_key(|(_, sessions)| std::cmp::Reverse(sessions.len()));
    for (name, sessions) in at_risk.into_iter().take(MAX_SKILLS) {
        let problems = problems(&signals, &sessions);
        let skill = skills.get(cx.who, &name).await?;
        let is_own = |skill: &Arc<Skill>| skill.is_live() && !is_managed(skill) && is_shown_in_full(&skill.content);
        if let Some(skill) = skill.filter(is_own)
            && !problems.is_empty()
        {
            improve(cx, &skill, problems).await;
        }
    }
    Ok(())
}

/// Returns `true` for a sign that a session went badly.
fn is_bad(signal: &FeedbackEntry) -> bool {
    match signal.signal_type {
        FeedbackSignal::Correction | FeedbackSignal::UserThumbsDown => true,
        FeedbackSignal::SessionSummary => {
            let detail = signal.detail.as_deref().unwrap_or_default();
            let summary = serde_json::from_str::<SessionSummary>(detail);
            summary.is_ok_and(|summary| summary.overall_quality <= Quality::Fair)
        }
        _ => false,
    }
}

/// Returns the problems of sessions that the user or the host stated. Summaries only choose the
/// sessions: their words come from whole conversations, and would make the skill untrusted.
fn problems(signals: &[FeedbackEntry], sessions: &BTreeSet<SessionId>) -> Vec<Item> {
    let is_stated = |kind| matches!(kind, FeedbackSignal::Correction | FeedbackSignal::ToolFailure);
    let stated = signals
        .iter()
        .filter(|signal| sessions.contains(&signal.session_id) && is_stated(signal.signal_type));
    stated.rev().take(MAX_PROBLEMS).map(item).collect()
}

async fn improve(cx: &mut PassContext<'_>, skill: &Arc<Skill>, problems: Vec<Item>) {
    let own = Item {
        id: skill.name.to_string(),
        text: skill.content.clone(),
        from: skill.provenance.clone(),
    };
    let question = Question {
        intro: "The skill, and what went wrong".to_owned(),
        items: std::iter::once(own).chain(problems).collect(),
        shape: SHAPE,
    };
    let ids: Vec<_> = question.items.iter().map(|item| item.id.clone()).collect();
    let Some((digest, improved)) = cx.ask::<Improved>(&question).await else {
        return;
    };
    let Some(content) = improved
        .content
        .filter(|content| content.trim() != skill.content.trim())
    else {
        return;
    };
    let vocabulary = Vocabulary::of([skill.content.as_str()]);
    let lost = missing(&skill.content, &content, &vocabulary);
    let (Some(content), Some(label), true) = (bounded(&content), question.label_of(&ids), lost.is_empty()) else {
        return cx.remark(format!(
            "the new text of `{}` was rejected: it is empty, too long, or lacks {}",
            skill.name,
            lost.join(", ")
        ));
    };
    let after = (**skill)
        .clone()
        .with_content(content)
        .with_updated_at(cx.now)
        .with_provenance(Provenance::labelled("dream", &label))
        .replacing(skill);
    let change = DreamChange::Skill {
        before: Some(Box::new((**skill).clone())),
        after: Box::new(after),
        reason: format!("{} problems in sessions that used it", ids.len() - 1),
    };
    cx.draft(
        format!("improve the skill `{}`", skill.name),
        vec![change],
        Some(digest),
    );
}
