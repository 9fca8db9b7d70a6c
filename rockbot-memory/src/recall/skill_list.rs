//! The list of trusted skills and of guides, whose lines are kept while none of them changes.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use rockbot_core::Principal;
use rockbot_core::chat::Provenance;
use rockbot_core::recall::ContextItem;
use rockbot_core::store::{Skill, StorePath};
use rockbot_core::support::one_line;
use rockbot_core::tool::{GuideSnapshot, ToolGuides};
use rockbot_store::kit::PrincipalCache;

use super::shortened;
use crate::skill_service::guides_beside;
use crate::tools::{KNOWN_SKILLS, is_untrusted_source, shown_origin};

pub(super) const LIST: &str = "Skills: read one with get_skill before you do such a task";

/// Maximum length of a summary in the list, in bytes.
const SUMMARY: usize = 100;

/// Maximum number of listed skills in one item: the budget for context takes or skips whole
/// items, and each costs a record.
pub(super) const MAX_LINES: usize = 10;

/// The lists of all principals.
#[derive(Debug, Default)]
pub(super) struct SkillLists(PrincipalCache<Mutex<Arc<SkillList>>>);

/// The first lines of a list, in the order of names, and the skills and guides that they were
/// made of.
#[derive(Debug, Default)]
pub(super) struct SkillList {
    /// The skills of the store. They are compared by address, which nothing else gets while a pointer
    /// to it is left.
    skills: Vec<Weak<Skill>>,
    guides: Option<GuideSnapshot>,
    lines: Vec<Line>,
}

/// The line of a skill or guide.
#[derive(Debug)]
struct Line {
    name: Box<str>,
    text: String,
    from: Provenance,
}

impl SkillLists {
    /// Returns the list of at least `max_lines` lines, if there are as many: the last list of
    /// `principal`, or a new list if a skill or guide changed since.
    pub(super) fn of(
        &self,
        principal: &Principal,
        skills: &[Arc<Skill>],
        guides: Option<&ToolGuides>,
        max_lines: usize,
    ) -> Arc<SkillList> {
        let cached = self.0.get_or_default(principal);
        let guides = guides.map(ToolGuides::snapshot);
        let mut list = cached.lock().unwrap_or_else(PoisonError::into_inner);
        if !list.is_of(skills, guides.as_ref()) {
            *list = Arc::new(SkillList::new(skills, guides, max_lines));
        }
        list.clone()
    }
}

impl SkillList {
    fn new(skills: &[Arc<Skill>], guides: Option<GuideSnapshot>, max_lines: usize) -> Self {
        let live: Vec<_> = skills.iter().filter(|skill| skill.is_live()).cloned().collect();
        let beside = guides
            .as_ref()
            .map_or_else(Vec::new, |guides| guides_beside(guides, &live));
        let trusted = live.iter().filter(|skill| !is_untrusted_source(&skill.provenance));
        let trusted = trusted.map(|skill| (skill.name.as_str(), &*skill.summary, shown_origin(&skill.provenance)));
        let beside = beside
            .iter()
            .map(|(name, summary)| (name.as_str(), &**summary, Provenance::HOST));
        let mut all: Vec<_> = trusted.chain(beside).collect();
        all.sort_unstable_by_key(|(name, ..)| *name);
        // Lines are made only of skills that may be shown: a store may have thousands.
        let lines = all.into_iter().take(max_lines).map(|(name, summary, from)| Line {
            name: name.into(),
            text: line(name, summary),
            from,
        });
        let lines = lines.collect();
        Self {
            skills: skills.iter().map(Arc::downgrade).collect(),
            guides,
            lines,
        }
    }

    /// Returns `true` if the list was made of the same skills and guides.
    fn is_of(&self, skills: &[Arc<Skill>], guides: Option<&GuideSnapshot>) -> bool {
        let same_guides = match (&self.guides, guides) {
            (Some(own), Some(guides)) => Arc::ptr_eq(own, guides),
            (own, guides) => own.is_none() && guides.is_none(),
        };
        let is_same = |(own, skill): (&Weak<Skill>, &Arc<Skill>)| own.as_ptr() == Arc::as_ptr(skill);
        same_guides && self.skills.len() == skills.len() && self.skills.iter().zip(skills).all(is_same)
    }

    /// Returns the first `max_lines` lines without the lines of `whole`. Lines of one author stand
    /// together.
    pub(super) fn items(&self, whole: &[StorePath], max_lines: usize) -> Vec<ContextItem> {
        let shown = self
            .lines
            .iter()
            .filter(|line| !whole.iter().any(|name| name.as_str() == &*line.name));
        let shown: Vec<_> = shown.take(max_lines).collect();
        let together = shown.chunk_by(|one, next| one.from == next.from);
        let items = together.flat_map(|lines| lines.chunks(MAX_LINES));
        items.map(item).collect()
    }
}

/// Returns lines of one author as one item.
fn item(lines: &[&Line]) -> ContextItem {
    let texts: Vec<_> = lines.iter().map(|line| &*line.text).collect();
    let from = lines.first().map_or(Provenance::HOST, |line| line.from.clone());
    let item = ContextItem::new(LIST, texts.join("\n"), "all skills are listed", from);
    item.as_guidance().activating(KNOWN_SKILLS)
}

/// Returns the line of a skill in the list.
pub(super) fn line(name: &str, summary: &str) -> String {
    let name = one_line(name);
    let summary = one_line(summary);
    if summary.is_empty() {
        format!("- {name}")
    } else {
        format!("- {name}: {}", shortened(&summary, SUMMARY))
    }
}
