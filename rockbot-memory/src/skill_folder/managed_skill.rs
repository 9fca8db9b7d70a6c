//! Skills that others offer, such as a host's guides to its tools: taken in, and upgraded as long as nobody touched them.
//!
//! The provenance of such a skill says from whom it is, with a digest of its text as it was offered: `guide:9f86d0…`. When
//! the text that stands there has another digest, somebody changed it, and it is left alone.

use std::collections::BTreeMap;

use rockbot_core::chat::Provenance;
use rockbot_core::context::Trust;
use rockbot_core::store::{Skill, SkillStore, StoreError, StorePath};
use rockbot_core::{Digest, Principal, Timestamp};

/// Who offers the skills of a folder.
pub(super) const FOLDER_SOURCE: &str = "skill-folder";

/// A skill as somebody offers it.
#[derive(Debug, Clone)]
pub(crate) struct ManagedSkill {
    pub(crate) name: StorePath,
    pub(crate) summary: String,
    pub(crate) content: String,
    pub(crate) metadata: BTreeMap<String, String>,
    /// Who offers it, such as `guide`.
    pub(crate) source: &'static str,
    pub(crate) trust: Trust,
}

/// What became of a skill that was brought from one place to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SkillOutcome {
    /// It is new there.
    Added,
    /// It took the place of what had come from here before, and nobody had touched since.
    Updated,
    /// It stands there already.
    Unchanged,
    /// What stands there was written or changed by somebody, or is trusted more, and stays.
    Kept,
    /// It was deleted there since it had come like this, and stays so.
    Deleted,
}

impl ManagedSkill {
    /// What tells this text from others.
    pub(crate) fn digest(&self) -> String {
        digest(&self.summary, &self.content, &self.metadata)
    }

    /// Takes it into a store, unless somebody wrote or deleted what has its name.
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

    /// What becomes of it where `known` stands, which `was_deleted` if there is nothing.
    fn outcome(&self, known: Option<&Skill>, was_deleted: bool) -> SkillOutcome {
        let Some(known) = known else {
            return match was_deleted {
                true => SkillOutcome::Deleted,
                false => SkillOutcome::Added,
            };
        };
        let as_offered = self.source_of(&digest(&known.summary, &known.content, &known.metadata));
        let offered = self.provenance();
        match known.provenance.source == as_offered {
            true if known.provenance == offered => SkillOutcome::Unchanged,
            // Nobody knows from which folder it came: a stranger's never takes the place of one that is trusted.
            true if known.provenance.trust <= self.trust => SkillOutcome::Updated,
            true if known.provenance.source == offered.source => SkillOutcome::Unchanged,
            _ => SkillOutcome::Kept,
        }
    }

    /// The skill in the place of `known`, whose age and uses it keeps.
    fn into_skill(self, known: Option<&Skill>, now: Timestamp) -> Skill {
        let provenance = self.provenance();
        Skill {
            name: self.name,
            summary: self.summary,
            content: self.content,
            created_at: known.map_or(now, |known| known.created_at),
            updated_at: known.map(|_| now),
            last_used_at: known.and_then(|known| known.last_used_at),
            see_also: known.map(|known| known.see_also.clone()).unwrap_or_default(),
            metadata: self.metadata,
            provenance,
        }
    }

    fn provenance(&self) -> Provenance {
        Provenance {
            source: self.source_of(&self.digest()).into(),
            trust: self.trust,
        }
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

    /// What becomes of the text "new" where `known` stands.
    #[track_caller]
    fn check(known: &Skill, expected: SkillOutcome) {
        assert_eq!(offer("new").outcome(Some(known), false), expected, "{known:?}");
    }

    #[test]
    fn what_nobody_touched_is_upgraded() {
        check(&taken("new"), SkillOutcome::Unchanged);
        check(&taken("old"), SkillOutcome::Updated);
        let used = Skill {
            last_used_at: Some(Timestamp::from_millis(1)),
            see_also: vec![StorePath::new("mail").unwrap()],
            ..taken("old")
        };
        check(&used, SkillOutcome::Updated);
        let upgraded = offer("new").into_skill(Some(&used), Timestamp::from_millis(2));
        let expected = Skill {
            content: "new".to_owned(),
            updated_at: Some(Timestamp::from_millis(2)),
            provenance: offer("new").provenance(),
            ..used
        };
        assert_eq!(upgraded, expected);
    }

    #[test]
    fn what_somebody_wrote_or_changed_stays() {
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
        assert_eq!(offer("new").outcome(None, false), SkillOutcome::Added);
    }
}
