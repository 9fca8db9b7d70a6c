//! Recall of skills that fit the message: the best one whole, the others by their summaries.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use rockbot_core::BoxError;
use rockbot_core::chat::Provenance;
use rockbot_core::recall::{ContextItem, ContextQuery, ContextSource};
use rockbot_core::store::{Skill, SkillStore, StorePath};

use super::shortened;
use super::topics::{merged, reason};
use crate::tools::is_untrusted_source;

const HEADING: &str = "Skills (read one with get_skill before you use it)";

/// Maximum size of a skill that is shown whole, in bytes.
const WHOLE: usize = 4_000;

/// Maximum length of a summary, in bytes.
const SUMMARY: usize = 1_024;

/// A context source of the skills that fit a message best, and of related ones; when a conversation begins, of the
/// summaries of all skills.
///
/// Skills from untrusted sources, such as those of folders that are not trusted, are shown only when they fit,
/// because a turn that was shown untrusted text is tainted: whatever it saves is not trusted either.
#[derive(Debug)]
pub struct SkillRecall {
    skills: Arc<dyn SkillStore>,
    max_skills: usize,
    max_listed: usize,
}

impl SkillRecall {
    /// Creates a source over `skills`.
    pub fn new(skills: Arc<dyn SkillStore>) -> Self {
        Self {
            skills,
            max_skills: 5,
            max_listed: 50,
        }
    }

    /// Sets the maximum number of matching skills. Default 5.
    #[must_use]
    pub fn with_max_skills(mut self, max_skills: usize) -> Self {
        self.max_skills = max_skills;
        self
    }

    /// Sets the maximum number of skills listed when a conversation begins. Default 50.
    #[must_use]
    pub fn with_max_listed(mut self, max_listed: usize) -> Self {
        self.max_listed = max_listed;
        self
    }

    async fn fitting(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        let search = async |topic| {
            let found = self.skills.search(&query.principal, topic, self.max_skills).await;
            found.map(|found| (topic, found))
        };
        let found = try_join_all(query.topics().map(search)).await?;
        let mut found = merged(found, |skill: &Arc<Skill>| skill.name.clone());
        found.truncate(self.max_skills);
        let mut items = Vec::with_capacity(found.len() + 1);
        for (index, found) in found.iter().enumerate() {
            let text = match index == 0 && found.item.content.len() <= WHOLE {
                true => whole(&found.item),
                false => line(&found.item),
            };
            items.push(item(text, reason(found.topic, found.score), &found.item.provenance));
        }
        let names: Vec<_> = found.iter().map(|found| &found.item.name).collect();
        let related = found.iter().flat_map(|found| &found.item.see_also);
        items.extend(see_also(related, &names));
        Ok(items)
    }

    async fn listed(&self, query: &ContextQuery, shown: &[ContextItem]) -> Result<Vec<ContextItem>, BoxError> {
        let skills = self.skills.list(&query.principal).await?;
        let is_shown = |skill: &Skill| shown.iter().any(|item| item.text.starts_with(&head(skill)));
        let left = skills
            .iter()
            .filter(|skill| !is_untrusted_source(&skill.provenance) && !is_shown(skill));
        let left = left.take(self.max_listed);
        let listed = left.map(|skill| item(line(skill), "the conversation begins".to_owned(), &skill.provenance));
        Ok(listed.collect())
    }
}

fn item(text: String, reason: String, provenance: &Provenance) -> ContextItem {
    ContextItem::new(HEADING, text, reason, provenance.clone())
}

fn head(skill: &Skill) -> String {
    format!("- {}: ", skill.name)
}

fn line(skill: &Skill) -> String {
    let summary = shortened(&skill.summary, SUMMARY);
    let summary = if summary.is_empty() {
        "(no summary yet)"
    } else {
        &summary
    };
    format!("{}{summary}", head(skill))
}

fn whole(skill: &Skill) -> String {
    format!("{}\n{}", line(skill), skill.content.trim())
}

/// Lists the skills related to the shown ones, if there are others.
fn see_also<'a>(related: impl Iterator<Item = &'a StorePath>, shown: &[&StorePath]) -> Option<ContextItem> {
    let mut names: Vec<_> = related
        .filter(|name| !shown.contains(name))
        .map(StorePath::as_str)
        .collect();
    names.sort_unstable();
    names.dedup();
    let text = || format!("- see also: {}", names.join(", "));
    (!names.is_empty()).then(|| item(text(), "goes with a skill that fits".to_owned(), &Provenance::MODEL))
}

#[async_trait]
impl ContextSource for SkillRecall {
    fn name(&self) -> &str {
        "skills"
    }

    async fn gather(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        let mut items = self.fitting(query).await?;
        if query.is_first() {
            let listed = self.listed(query, &items).await?;
            items.extend(listed);
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::context::Trust;
    use rockbot_core::store::InMemorySkillStore;
    use rockbot_core::{Principal, Timestamp};

    use super::*;

    fn skill(name: &str, summary: &str, see_also: &[&str]) -> Skill {
        Skill::new(
            StorePath::new(name).unwrap(),
            format!("# {name}"),
            Timestamp::default(),
            Provenance::USER,
        )
        .with_summary(summary)
        .with_see_also(see_also.iter().map(|name| StorePath::new(name).unwrap()).collect())
    }

    async fn check(text: &str, earlier: &[&str], expected: &[&str]) {
        let of_stranger = skill("poems", "Writing verses.", &[]).with_provenance(Provenance::MODEL);
        let by_hand = Provenance::new("unknown", Trust::Untrusted);
        let skills = InMemorySkillStore::new();
        for skill in [
            of_stranger,
            skill("travel/trains", "Booking trains and seats.", &["travel/hotels", "maps"]),
            skill("travel/hotels", "Booking hotels.", &[]),
            skill("cooking", "", &[]).with_provenance(by_hand),
        ] {
            skills.save(&Principal::default(), skill).await.unwrap();
        }
        let query = ContextQuery::new(Principal::default(), "s".into(), "t".into(), text);
        let query = query.with_earlier(earlier.iter().map(|&text| text.to_owned()).collect());
        let items = SkillRecall::new(Arc::new(skills)).gather(&query).await.unwrap();
        assert_eq!(
            items.iter().map(|item| item.text.as_str()).collect::<Vec<_>>(),
            expected
        );
    }

    #[tokio::test]
    async fn the_best_skill_is_shown_whole_and_the_others_by_what_they_are_for() {
        check(
            "Please reserve seats, some trains go early.",
            &["Hello"],
            &[
                "- travel/trains: Booking trains and seats.\n# travel/trains",
                "- see also: maps, travel/hotels",
            ],
        )
        .await;
    }

    #[tokio::test]
    async fn a_conversation_begins_with_a_list_of_all_trusted_skills() {
        check(
            "Hi",
            &[],
            &[
                "- cooking: (no summary yet)",
                "- travel/hotels: Booking hotels.",
                "- travel/trains: Booking trains and seats.",
            ],
        )
        .await;
        check("Hi", &["Hello"], &[]).await;
        let fits = ["- poems: Writing verses.\n# poems"];
        check(
            "Please help me with writing verses, poems above all.",
            &["Hello"],
            &fits,
        )
        .await;
    }
}
