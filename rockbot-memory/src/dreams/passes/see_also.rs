//! Links skills that are used together. Asks no model.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rockbot_core::Timestamp;
use rockbot_core::store::{Skill, StoreError, StorePath};

use super::super::pass_context::PassContext;
use super::super::plan::DreamChange;

/// Time for which uses are looked at.
const SINCE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Maximum number of uses that are read, the newest uses.
const MAX_USES: usize = 10_000;

/// Minimum number of sessions with both skills for a link between them.
const MIN_SESSIONS: usize = 3;

/// Maximum number of skills of a session that are paired: a session with more skills says little
/// about each.
const MAX_OF_SESSION: usize = 10;

/// Maximum number of links of a skill.
const MAX_LINKS: usize = 5;

pub(super) async fn run(cx: &mut PassContext<'_>) -> Result<(), StoreError> {
    let (Some(skills), Some(usage)) = (&cx.stores.skills, &cx.stores.usage) else {
        return Ok(());
    };
    let millis = cx.now.as_millis().saturating_sub(SINCE.as_millis() as u64);
    let uses = usage
        .query_recent(cx.who, Timestamp::from_millis(millis), MAX_USES)
        .await?;
    let mut sessions: BTreeMap<_, BTreeSet<StorePath>> = BTreeMap::new();
    for used in uses {
        sessions.entry(used.session_id).or_default().insert(used.skill_name);
    }
    let mut pairs: BTreeMap<(&StorePath, &StorePath), usize> = BTreeMap::new();
    for names in sessions.values().filter(|names| names.len() <= MAX_OF_SESSION) {
        for (a, b) in names
            .iter()
            .flat_map(|a| names.iter().map(move |b| (a, b)))
            .filter(|(a, b)| a != b)
        {
            *pairs.entry((a, b)).or_default() += 1;
        }
    }
    let all = skills.list(cx.who).await?;
    let live: BTreeSet<_> = all
        .iter()
        .filter(|skill| skill.is_live())
        .map(|skill| &skill.name)
        .collect();
    let mut changes = Vec::new();
    for skill in all.iter().filter(|skill| skill.is_live()) {
        let often = pairs
            .iter()
            .filter(|((a, b), count)| **a == skill.name && **count >= MIN_SESSIONS && live.contains(b));
        let links: Vec<_> = often.map(|((_, b), count)| ((*b).clone(), *count)).collect();
        changes.extend(linked(skill, links));
    }
    cx.draft(
        format!("link {} skills that are used together", changes.len()),
        changes,
        None,
    );
    Ok(())
}

/// Returns the change that adds links to a skill, the most frequent first; `None` if there is
/// nothing to add.
fn linked(skill: &Skill, mut links: Vec<(StorePath, usize)>) -> Option<DreamChange> {
    links.retain(|(name, _)| !skill.see_also.contains(name));
    links.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    links.truncate(MAX_LINKS.saturating_sub(skill.see_also.len()));
    if links.is_empty() {
        return None;
    }
    let reasons: Vec<_> = links
        .iter()
        .map(|(name, count)| format!("{count} sessions with {name}"))
        .collect();
    let mut see_also = skill.see_also.clone();
    see_also.extend(links.into_iter().map(|(name, _)| name));
    Some(DreamChange::Skill {
        before: Some(Box::new(skill.clone())),
        after: Box::new(skill.clone().with_see_also(see_also)),
        reason: reasons.join(", "),
    })
}
