//! Recall of skills: a list of all, and the whole text of skills that fit the message or that the
//! conversation uses.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use rockbot_core::recall::{ContextItem, ContextQuery, ContextSource};
use rockbot_core::search::{Analyzer, UnicodeAnalyzer};
use rockbot_core::store::{Skill, SkillStore, SkillUsageStore, StorePath};
use rockbot_core::support::{indented, one_line};
use rockbot_core::tool::ToolGuides;
use rockbot_core::{BoxError, Clock, Timestamp};

use super::skill_list::{LIST, SkillLists, line};
use super::topics::{TopicHit, merged, reason};
use crate::tools::long_term::mark;
use crate::tools::{KNOWN_SKILLS, is_untrusted_source, shown_origin};

/// The heading of skills that are shown as data: their authors are not trusted.
const OTHERS: &str = "Skills from elsewhere (read one with get_skill before you use it)";

/// Maximum size of a skill that is shown whole, in bytes.
const WHOLE: usize = 4_000;

/// Time for which a skill that the conversation read stays in use.
const IN_USE: Duration = Duration::from_secs(30 * 60);

/// Maximum number of skills in use that are shown whole.
const MAX_IN_USE: usize = 2;

/// Maximum number of trusted skills that are shown whole: the skills in use, and the best fitting
/// skill. They have no line.
const MAX_WHOLE: usize = MAX_IN_USE + 1;

/// Maximum number of uses of all conversations that are searched for the uses of one
/// conversation.
const MAX_USES: usize = 50;

/// A context source of skills.
///
/// It lists all trusted skills, and the host's guides, in each turn, one short line each, so that
/// the model knows the skills that it can read. A skill is shown whole when it fits the message:
/// they share two words, or half of the message's. A skill that the conversation read in the last
/// 30 minutes is shown whole, too, for as long as it is used. Trusted skills are shown as
/// guidance.
///
/// Skills from untrusted sources, such as folders that are not trusted, are shown only when they
/// fit, as data, because a turn that was shown untrusted text is tainted: whatever it saves is
/// not trusted either.
#[derive(Debug)]
pub struct SkillRecall {
    skills: Arc<dyn SkillStore>,
    guides: Option<Arc<ToolGuides>>,
    usage: Option<(Arc<dyn SkillUsageStore>, Arc<dyn Clock>)>,
    max_skills: usize,
    max_listed: usize,
    lists: SkillLists,
}

impl SkillRecall {
    /// Creates a source over `skills`.
    pub fn new(skills: Arc<dyn SkillStore>) -> Self {
        Self {
            skills,
            guides: None,
            usage: None,
            max_skills: 5,
            max_listed: 50,
            lists: SkillLists::default(),
        }
    }

    /// Sets the guides that are listed with the skills. Default: none.
    #[must_use]
    pub fn with_guides(mut self, guides: Arc<ToolGuides>) -> Self {
        self.guides = Some(guides);
        self
    }

    /// Sets the store of uses, which tells the skills that a conversation uses. Default: none is in
    /// use.
    #[must_use]
    pub fn with_usage(mut self, usage: Arc<dyn SkillUsageStore>, clock: Arc<dyn Clock>) -> Self {
        self.usage = Some((usage, clock));
        self
    }

    /// Sets the maximum number of matching skills. Default 5.
    #[must_use]
    pub fn with_max_skills(mut self, max_skills: usize) -> Self {
        self.max_skills = max_skills;
        self
    }

    /// Sets the maximum number of listed skills. Default 50.
    #[must_use]
    pub fn with_max_listed(mut self, max_listed: usize) -> Self {
        self.max_listed = max_listed;
        self
    }

    /// Returns the skills that the conversation read lately, the last skill first.
    async fn in_use(&self, query: &ContextQuery) -> Result<Vec<Arc<Skill>>, BoxError> {
        let Some((usage, clock)) = &self.usage else {
            return Ok(Vec::new());
        };
        let now = clock.now().as_millis();
        let since = Timestamp::from_millis(now.saturating_sub(IN_USE.as_millis().try_into().unwrap_or(u64::MAX)));
        let uses = usage.query_recent(&query.principal, since, MAX_USES).await?;
        let mut names: Vec<StorePath> = Vec::new();
        for used in uses.into_iter().rev().filter(|used| used.session_id == query.session) {
            if !names.contains(&used.skill_name) && names.len() < MAX_IN_USE {
                names.push(used.skill_name);
            }
        }
        let skills = names.iter().map(|name| self.skills.get(&query.principal, name));
        let found = try_join_all(skills).await?.into_iter().flatten();
        Ok(found.filter(|skill| skill.is_live()).collect())
    }

    /// Returns the fitting skills, the best first, up to the last skill from an untrusted source. The
    /// trusted skills behind the best one and that skill are left out: the list has their lines.
    async fn fitting<'a>(&self, query: &'a ContextQuery) -> Result<Vec<TopicHit<'a, Arc<Skill>>>, BoxError> {
        let search = async |topic| {
            let found = self.skills.search(&query.principal, topic, self.max_skills).await;
            found.map(|found| (topic, found))
        };
        let found = try_join_all(query.topics().map(search)).await?;
        let found = merged(found, |skill: &Arc<Skill>| skill.name.clone());
        let is_untrusted = |found: &TopicHit<'_, Arc<Skill>>| is_untrusted_source(&found.item.provenance);
        let last_untrusted = found.iter().rposition(is_untrusted);
        let mut topics: Vec<(&str, TopicWords)> = Vec::new();
        let mut fitting = Vec::new();
        for (place, found) in found.into_iter().enumerate() {
            // Comparing a skill reads its summary.
            let is_needed = fitting.is_empty() || last_untrusted >= Some(place);
            if fitting.len() == self.max_skills || !is_needed {
                break;
            }
            let known = topics.iter().position(|(topic, _)| *topic == found.topic);
            let at = known.unwrap_or_else(|| {
                topics.push((found.topic, TopicWords::of(found.topic)));
                topics.len() - 1
            });
            if topics[at].1.fit(&found.item) {
                fitting.push(found);
            }
        }
        Ok(fitting)
    }
}

/// Number of bytes of a message that are compared with the purpose of a skill. A message names
/// its subject early, and a pasted document would be read for each skill, on the runtime's
/// thread.
const MAX_COMPARED: usize = 4 * 1024;

/// The different words of a message, in order.
struct TopicWords(Vec<String>);

impl TopicWords {
    fn of(topic: &str) -> Self {
        let topic = &topic[..topic.floor_char_boundary(MAX_COMPARED)];
        let mut words = Vec::new();
        UnicodeAnalyzer.words(topic, &mut |word, _| words.push(word.to_owned()));
        words.sort_unstable();
        words.dedup();
        Self(words)
    }

    /// Reports whether the message is about the purpose of a skill: they share two words, or half of
    /// the message's.
    fn fit(&self, skill: &Skill) -> bool {
        let mut shared: Vec<usize> = Vec::new();
        let mut compare = |word: &str, _: &str| {
            let at = self.0.binary_search_by(|asked| asked.as_str().cmp(word));
            shared.extend(at.ok().filter(|at| !shared.contains(at)));
        };
        UnicodeAnalyzer.words(skill.name.as_str(), &mut compare);
        UnicodeAnalyzer.words(&skill.summary, &mut compare);
        shared.len() >= 2 || (shared.len() == 1 && self.0.len() <= 2)
    }
}

/// Returns a skill whole, or its line if it is long. A skill whose author is not trusted is data.
fn shown(skill: &Skill, reason: String) -> ContextItem {
    let from = shown_origin(&skill.provenance);
    let item = |heading: String, text| ContextItem::new(heading, text, reason, from);
    let is_whole = skill.content.len() <= WHOLE;
    let item = match (is_untrusted_source(&skill.provenance), is_whole) {
        (true, true) => {
            let text = format!("{}\n{}", marked(skill, ""), indented(skill.content.trim()));
            item(OTHERS.to_owned(), text)
        }
        (true, false) => item(OTHERS.to_owned(), marked(skill, &skill.summary)),
        (false, true) => item(heading(skill), skill.content.trim().to_owned()).as_guidance(),
        (false, false) => item(LIST.to_owned(), line(skill.name.as_str(), &skill.summary)).as_guidance(),
    };
    item.activating(KNOWN_SKILLS)
}

/// Returns the line of a skill whose author is not trusted, with the mark that says so.
fn marked(skill: &Skill, summary: &str) -> String {
    let name = one_line(skill.name.as_str());
    let mark = mark(&skill.provenance).unwrap_or_default();
    line(&format!("{name} ({mark})"), summary)
}

fn heading(skill: &Skill) -> String {
    let others: Vec<_> = skill.see_also.iter().map(StorePath::as_str).collect();
    if others.is_empty() {
        format!("Skill {}", skill.name)
    } else {
        format!("Skill {} (see also {})", skill.name, others.join(", "))
    }
}

#[async_trait]
impl ContextSource for SkillRecall {
    fn name(&self) -> &str {
        "skills"
    }

    async fn gather(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        let in_use = self.in_use(query).await?.into_iter();
        let mut items: Vec<_> = in_use.map(|skill| (skill, "in use".to_owned())).collect();
        for (rank, found) in self.fitting(query).await?.into_iter().enumerate() {
            let is_known = items.iter().any(|(skill, _)| skill.name == found.item.name);
            // The best skill is shown whole, and trusted skills have their line in the list already.
            if !is_known && (rank == 0 || is_untrusted_source(&found.item.provenance)) {
                items.push((found.item, reason(found.topic, found.score)));
            }
        }
        let names: Vec<_> = items.iter().map(|(skill, _)| skill.name.clone()).collect();
        let mut shown: Vec<_> = items.into_iter().map(|(skill, reason)| shown(&skill, reason)).collect();
        let skills = self.skills.list(&query.principal).await?;
        let max_lines = self.max_listed + MAX_WHOLE;
        let list = self
            .lists
            .of(&query.principal, &skills, self.guides.as_deref(), max_lines);
        shown.extend(list.items(&names, self.max_listed));
        Ok(shown)
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::Principal;
    use rockbot_core::chat::Provenance;
    use rockbot_core::context::Trust;
    use rockbot_core::store::{InMemorySkillStore, InMemorySkillUsageStore, SkillUsage, TimelineStore};
    use rockbot_core::testing::ManualClock;
    use rockbot_core::tool::StaticGuide;

    use super::super::skill_list::MAX_LINES;
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

    #[test]
    fn a_long_message_is_compared_by_its_beginning() {
        let trains = skill("travel/trains", "Booking trains and seats.", &[]);
        let pasted = "lorem ipsum dolor ".repeat(MAX_COMPARED);
        assert!(TopicWords::of(&format!("Book trains for this: {pasted}")).fit(&trains));
        assert!(!TopicWords::of(&format!("{pasted} booking trains")).fit(&trains));
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
        // Those of one author are one item: `cooking` has another than the trips.
        let shown = |item: &ContextItem| match (&*item.heading, item.is_guidance) {
            (LIST, true) => item.text.clone(),
            (heading, true) => format!("{heading}: {}", item.text),
            (_, false) => format!("data: {}", item.text),
        };
        assert_eq!(items.iter().map(shown).collect::<Vec<_>>(), expected);
        assert!(
            items
                .iter()
                .all(|item| item.activates.as_ref().unwrap() == KNOWN_SKILLS)
        );
    }

    #[tokio::test]
    async fn the_best_skill_is_shown_whole_and_the_others_are_listed() {
        check(
            "Please reserve seats, some trains go early.",
            &["Hello"],
            &[
                "Skill travel/trains (see also travel/hotels, maps): # travel/trains",
                "- cooking",
                "- travel/hotels: Booking hotels.",
            ],
        )
        .await;
    }

    #[tokio::test]
    async fn a_long_list_has_few_items() {
        let skills = InMemorySkillStore::new();
        let me = Principal::default();
        for number in 0..2 * MAX_LINES + 1 {
            skills
                .save(&me, skill(&format!("s{number:02}"), "", &[]))
                .await
                .unwrap();
        }
        let query = ContextQuery::new(me, "s".into(), "t".into(), "Hi");
        let items = SkillRecall::new(Arc::new(skills)).gather(&query).await.unwrap();
        let lines: Vec<_> = items.iter().map(|item| item.text.lines().count()).collect();
        assert_eq!(lines, [MAX_LINES, MAX_LINES, 1]);
    }

    #[tokio::test]
    async fn the_list_follows_each_change_of_a_skill_or_guide() {
        let skills = Arc::new(InMemorySkillStore::new());
        let me = Principal::default();
        let guides = Arc::new(ToolGuides::new());
        let recall = SkillRecall::new(skills.clone()).with_guides(guides.clone());
        let query = ContextQuery::new(me.clone(), "s".into(), "t".into(), "Hi");
        let shown = async || {
            let items = recall.gather(&query).await.unwrap();
            items.iter().map(|item| item.text.clone()).collect::<Vec<_>>()
        };
        skills.save(&me, skill("cooking", "", &[])).await.unwrap();
        assert_eq!(shown().await, ["- cooking"]);
        skills.save(&me, skill("cooking", "Cooking rice.", &[])).await.unwrap();
        assert_eq!(shown().await, ["- cooking: Cooking rice."]);
        guides
            .add(StaticGuide::new("web", "Reading the web.", "Read."))
            .unwrap();
        assert_eq!(shown().await, ["- cooking: Cooking rice.", "- web: Reading the web."]);
        let archived = skill("cooking", "Cooking rice.", &[]).with_archived_at(Timestamp::default());
        skills.save(&me, archived).await.unwrap();
        assert_eq!(shown().await, ["- web: Reading the web."]);
        skills.save(&me, skill("baking", "", &[])).await.unwrap();
        guides.remove("web");
        assert_eq!(shown().await, ["- baking"]);
        skills.delete(&me, &StorePath::new("baking").unwrap()).await.unwrap();
        assert_eq!(shown().await, [""; 0]);
    }

    #[tokio::test]
    async fn trusted_skills_are_listed_in_each_turn_and_none_is_whole_that_does_not_fit() {
        let all = [
            "- cooking",
            "- travel/hotels: Booking hotels.\n- travel/trains: Booking trains and seats.",
        ];
        check("Hi", &[], &all).await;
        check("Hi", &["Hello"], &all).await;
        check(
            "What do the trains of this world have to do with poets and kings?",
            &[],
            &all,
        )
        .await;
        let data = "data: - poems (from model, not confirmed by the user)\n    # poems";
        let poems = [data, all[0], all[1]];
        check(
            "Please help me with writing verses, poems above all.",
            &["Hello"],
            &poems,
        )
        .await;
    }

    #[tokio::test]
    async fn a_skill_that_the_conversation_read_stays_whole_while_it_is_used() {
        let skills = InMemorySkillStore::new();
        let usage = InMemorySkillUsageStore::new();
        let (me, clock) = (Principal::default(), ManualClock::new(Timestamp::from_millis(1 << 40)));
        skills.save(&me, skill("cooking", "Cooking rice.", &[])).await.unwrap();
        let used = SkillUsage::new("u", StorePath::new("cooking").unwrap(), "s", clock.now());
        usage.append(&me, used).await.unwrap();
        let recall = SkillRecall::new(Arc::new(skills)).with_usage(Arc::new(usage), Arc::new(clock.clone()));
        let shown = async |session: &str| {
            let query = ContextQuery::new(me.clone(), session.into(), "t".into(), "And then?");
            recall.gather(&query).await.unwrap().remove(0).text
        };
        assert_eq!(shown("s").await, "# cooking");
        assert_eq!(shown("other").await, "- cooking: Cooking rice.");
        clock.advance(IN_USE + Duration::from_millis(1));
        assert_eq!(shown("s").await, "- cooking: Cooking rice.");
    }
}
