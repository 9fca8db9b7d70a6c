//! Managed skills: provided by the host or a folder, installed, and upgraded as long as they are
//! not edited.
//!
//! The provenance of a managed skill names its source, with a digest of its text as it was
//! provided: `guide:9f86d0…`. When the stored text has another digest, it was edited, and
//! upgrades leave it alone.

use std::collections::BTreeMap;

use rockbot_core::chat::Provenance;
use rockbot_core::context::Trust;
use rockbot_core::store::{Skill, SkillStore, StoreError, StorePath};
use rockbot_core::{Digest, Principal, Timestamp};

/// The source of skills from a folder.
pub(super) const FOLDER_SOURCE: &str = "skill-folder";

/// A skill as its source provides it.
#[derive(Debug, Clone)]
pub(crate) struct ManagedSkill {
    pub(crate) name: StorePath,
    pub(crate) summary: String,
    pub(crate) content: String,
    pub(crate) metadata: BTreeMap<String, String>,
    /// The source, such as `guide`.
    pub(crate) source: &'static str,
    pub(crate) trust: Trust,
}

/// The fate of a skill that was copied from one place to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SkillOutcome {
    /// The skill is new there.
    Added,
    /// The skill replaced an earlier copy, which had not been edited.
    Updated,
    /// The skill is already there.
    Unchanged,
    /// The existing skill was edited, has another author, or is trusted more, and stays.
    Kept,
    /// The skill was deleted after an earlier copy, and stays deleted.
    Deleted,
}

impl ManagedSkill {
    /// Returns the digest of the text.
    pub(crate) fn digest(&self) -> String {
        digest(&self.summary, &self.content, &self.metadata)
    }

    /// Installs the skill into a store, unless a skill of its name was edited, has another author, or
    /// was deleted.
    pub(crate) async fn install_into(
        self,
        store: &dyn SkillStore,
        principal: &Principal,
        was_deleted: bool,
        now: Timestamp,
    ) -> Result<SkillOutcome, StoreError> {
        let known = store.get(principal, &self.name).await?;
        let outcome = self.outcome(known.as_deref(), was_deleted);
        if matches!(outcome, SkillOutcome::Added | SkillOutcome::Updated) {
            store.save(principal, self.into_skill(known.as_deref(), now)).await?;
        }
        Ok(outcome)
    }

    /// Decides the outcome, given the existing skill `known`, or that it `was_deleted`.
    fn outcome(&self, known: Option<&Skill>, was_deleted: bool) -> SkillOutcome {
        let Some(known) = known.filter(|known| known.is_live()) else {
            return if was_deleted {
                SkillOutcome::Deleted
            } else {
                SkillOutcome::Added
            };
        };
        let as_offered = self.source_of(&digest(&known.summary, &known.content, &known.metadata));
        let offered = self.provenance();
        match known.provenance.source == as_offered {
            true if known.provenance == offered => SkillOutcome::Unchanged,
            // All folders share one source name, so an untrusted folder must not replace a skill of a
            // trusted one.
            true if known.provenance.trust <= self.trust => SkillOutcome::Updated,
            true if known.provenance.source == offered.source => SkillOutcome::Unchanged,
            _ => SkillOutcome::Kept,
        }
    }

    /// Converts it into a skill that replaces `known`, and keeps its age and uses.
    fn into_skill(self, known: Option<&Skill>, now: Timestamp) -> Skill {
        let provenance = self.provenance();
        Skill::new(
            self.name,
            self.content,
            known.map_or(now, |known| known.created_at),
            provenance,
        )
        .with_summary(self.summary)
        .with_updated_at(known.map(|_| now))
        .with_last_used_at(known.and_then(|known| known.last_used_at))
        .with_see_also(known.map(|known| known.see_also.clone()).unwrap_or_default())
        .with_metadata(self.metadata)
    }

    fn provenance(&self) -> Provenance {
        Provenance::new(self.source_of(&self.digest()), self.trust)
    }

    fn source_of(&self, digest: &str) -> String {
        format!("{}:{digest}", self.source)
    }
}

fn digest(summary: &str, content: &str, metadata: &BTreeMap<String, String>) -> String {
    let metadata = metadata.iter().flat_map(|(name, value)| [name.as_str(), value]);
    Digest::of([summary, content].into_iter().chain(metadata)).short()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(content: &str) -> ManagedSkill {
        ManagedSkill {
            name: StorePath::new("web").unwrap(),
            summary: "Reading pages.".to_owned(),
            content: content.to_owned(),
            metadata: [("license".to_owned(), "MIT".to_owned())].into(),
            source: "guide",
            trust: Trust::Host,
        }
    }

    fn taken(content: &str) -> Skill {
        offer(content).into_skill(None, Timestamp::default())
    }

    /// Checks the outcome for the text "new" where `known` exists.
    #[track_caller]
    fn check(known: &Skill, expected: SkillOutcome) {
        assert_eq!(offer("new").outcome(Some(known), false), expected, "{known:?}");
    }

    #[test]
    fn an_unedited_skill_is_upgraded() {
        check(&taken("new"), SkillOutcome::Unchanged);
        check(&taken("old"), SkillOutcome::Updated);
        let used = taken("old")
            .with_last_used_at(Timestamp::from_millis(1))
            .with_see_also(vec![StorePath::new("mail").unwrap()]);
        check(&used, SkillOutcome::Updated);
        let upgraded = offer("new").into_skill(Some(&used), Timestamp::from_millis(2));
        let expected = used
            .with_content("new")
            .with_updated_at(Timestamp::from_millis(2))
            .with_provenance(offer("new").provenance());
        assert_eq!(upgraded, expected);
    }

    #[test]
    fn an_edited_skill_stays() {
        let edited = |change: fn(&mut Skill)| {
            let mut skill = taken("old");
            change(&mut skill);
            skill
        };
        check(&edited(|skill| skill.content.push('!')), SkillOutcome::Kept);
        check(&edited(|skill| skill.summary.clear()), SkillOutcome::Kept);
        check(&edited(|skill| skill.metadata.clear()), SkillOutcome::Kept);
        check(&edited(|skill| skill.content = "new".to_owned()), SkillOutcome::Kept);
        check(&edited(|skill| skill.provenance = Provenance::USER), SkillOutcome::Kept);
        let of_another = ManagedSkill {
            source: "skill-folder",
            ..offer("old")
        };
        check(&of_another.into_skill(None, Timestamp::default()), SkillOutcome::Kept);
    }

    #[test]
    fn what_is_trusted_less_takes_no_place() {
        let judged = |content: &str, from: Trust, to: Trust| {
            let known = ManagedSkill {
                trust: from,
                ..offer("old")
            };
            let offered = ManagedSkill {
                trust: to,
                ..offer(content)
            };
            let known = known.into_skill(None, Timestamp::default());
            offered.outcome(Some(&known), false)
        };
        assert_eq!(judged("new", Trust::Host, Trust::Untrusted), SkillOutcome::Kept);
        assert_eq!(judged("old", Trust::Host, Trust::Untrusted), SkillOutcome::Unchanged);
        assert_eq!(judged("new", Trust::Untrusted, Trust::Host), SkillOutcome::Updated);
        assert_eq!(judged("old", Trust::Untrusted, Trust::Host), SkillOutcome::Updated);
    }

    #[test]
    fn what_was_deleted_stays_so() {
        assert_eq!(offer("new").outcome(None, true), SkillOutcome::Deleted);
        let archived = taken("old").with_archived_at(Timestamp::default());
        assert_eq!(offer("new").outcome(Some(&archived), true), SkillOutcome::Deleted);
        assert_eq!(offer("new").outcome(Some(&archived), false), SkillOutcome::Added);
        assert_eq!(offer("new").outcome(None, false), SkillOutcome::Added);
    }
}
