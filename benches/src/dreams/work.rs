//! The passes over skills: work that the user explained twice, skills that have half of the steps
//! each, and skills that were corrected. The question is whether the next order for the work is
//! shown the right steps.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier, Role};
use rockbot_core::content::Provenance;
use rockbot_core::recall::{ContextQuery, ContextSource as _};
use rockbot_core::store::{
    ConversationLog, FeedbackEntry, FeedbackSignal, FeedbackStore, InMemoryConversationLog, InMemoryFeedbackStore,
    InMemorySkillStore, InMemorySkillUsageStore, LogEntry, Skill, SkillStore, SkillUsage, SkillUsageStore, StorePath,
    TimelineStore as _,
};
use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
use rockbot_core::testing::{ManualClock, SequentialIds};
use rockbot_core::trust::Label;
use rockbot_core::{AgentIdentity, BoxError, Digest, IdSource, Principal, Timestamp};
use rockbot_memory::dreams::{DreamOptions, DreamPass, Dreaming, Dreams};
use rockbot_memory::recall::SkillRecall;
use serde_json::json;

use super::grammar::{MADE_UP, name};
use super::reader::Score;

/// Passes that change skills, each measured alone.
pub const SKILL_PASSES: [DreamPass; 3] = [
    DreamPass::SkillGap,
    DreamPass::SkillConsolidation,
    DreamPass::SkillOptimization,
];

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Things that are made.
const THINGS: [&str; 8] = [
    "invoice",
    "timetable",
    "newsletter",
    "inventory",
    "contract",
    "poster",
    "menu",
    "logbook",
];

/// The knowledge of the agent about a kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The user explained the steps in two conversations, and there is no skill.
    Explained,
    /// Two skills have a step each.
    Halves,
    /// A skill has a wrong step, which the user corrected.
    Corrected,
}

/// A kind of work, with the people of its steps.
#[derive(Debug)]
struct Work {
    kind: Kind,
    thing: &'static str,
    owner: String,
    people: [String; 2],
}

/// A scripted model that knows the work, and on request answers a part with nonsense.
#[derive(Debug)]
struct Scribe {
    works: Vec<Work>,
    nonsense: usize,
}

impl Work {
    fn order(&self) -> String {
        format!("Make the {} for {}.", self.thing, self.owner)
    }

    fn steps(&self) -> [String; 2] {
        let Self {
            thing, owner, people, ..
        } = self;
        [
            format!("For the {thing} of {owner}: get the figures from {}.", people[0]),
            format!("For the {thing} of {owner}: send it to {}.", people[1]),
        ]
    }

    /// Returns the names of the skill, or of both skills.
    fn skills(&self) -> [String; 2] {
        let (owner, thing) = (self.owner.to_lowercase(), self.thing);
        [format!("{thing}-{owner}"), format!("{owner}-{thing}")]
    }

    fn explained(&self) -> String {
        let [first, second] = &self.people;
        format!(
            "{} Get the figures from {first}, and send it to {second}.",
            self.order()
        )
    }

    fn correction(&self) -> String {
        format!("No: {}", self.steps()[1])
    }

    /// Returns the values that the next order must be shown.
    fn expected(&self) -> &[String] {
        if self.kind == Kind::Corrected {
            &self.people[1..]
        } else {
            &self.people
        }
    }
}

/// Returns the kinds of work of a seed.
fn works(seed: u64) -> Vec<Work> {
    let mut names = (0..8_000).map(|number| name((seed as usize * 89 + number * 1_237) % 8_000));
    let mut next = || names.next().expect("there are names enough");
    let kinds = [Kind::Explained, Kind::Halves, Kind::Corrected];
    let all = THINGS.iter().flat_map(|thing| kinds.map(|kind| (kind, *thing)));
    all.map(|(kind, thing)| Work {
        kind,
        thing,
        owner: next(),
        people: [next(), next()],
    })
    .collect()
}

impl Scribe {
    /// Returns the answer to a question about these texts.
    fn answer(&self, asked: &str) -> String {
        if asked.starts_with("The first messages") {
            let ids = |work: &Work| {
                let lines = asked.lines().filter(|line| line.contains(&work.explained()));
                let ids = lines.filter_map(|line| line.strip_prefix('[')?.split(']').next());
                ids.map(str::to_owned).collect::<Vec<_>>()
            };
            let seen = self.works.iter().map(|work| (work, ids(work)));
            let saved = seen.filter(|(_, ids)| ids.len() >= 2).map(|(work, ids)| {
                json!({"name": work.skills()[0], "summary": work.order(), "content": work.steps().join("\n"), "sourceIds": ids})
            });
            return json!({"toSave": saved.collect::<Vec<_>>()}).to_string();
        }
        let is_merge = asked.starts_with("The skills.");
        let wanted = if is_merge { Kind::Halves } else { Kind::Corrected };
        let shown = |work: &&Work| work.kind == wanted && asked.contains(&format!("[{}]", work.skills()[0]));
        let Some(work) = self.works.iter().find(shown) else {
            return "{}".to_owned();
        };
        if is_merge {
            let names = work.skills();
            let merged = json!({
                "name": names[0], "summary": work.order(), "content": work.steps().join("\n"), "sourceNames": names,
            });
            return json!({"toSave": [merged]}).to_string();
        }
        let content = format!("{}\nThat has changed. {}", wrong_step(work), work.correction());
        json!({ "content": content }).to_string()
    }
}

/// Returns the step of a skill that is corrected.
fn wrong_step(work: &Work) -> String {
    work.steps()[1].replace(&work.people[1], &work.people[0])
}

#[async_trait]
impl ChatClient for Scribe {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let asked = call.request.messages[1].text();
        let digest = Digest::of([&*asked]).short();
        let dice = digest
            .bytes()
            .fold(7, |sum, byte| sum * 31 % 10_007 + usize::from(byte));
        if dice % 100 >= self.nonsense {
            return Ok(ChatResponse::text(self.answer(&asked)));
        }
        let ids: Vec<_> = asked
            .lines()
            .filter_map(|line| line.strip_prefix('[')?.split(']').next())
            .take(2)
            .collect();
        let text = format!("Send everything to {MADE_UP}.");
        let saved = json!({"name": ids.first(), "content": text, "sourceIds": ids, "sourceNames": ids});
        let answers = [
            "Certainly! {".to_owned(),
            json!({"toSave": [saved], "content": text}).to_string(),
        ];
        Ok(ChatResponse::text(answers[dice / 100 % 2].clone()))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// The stores of an agent that works.
#[derive(Default)]
struct Agent {
    clock: ManualClock,
    skills: Arc<InMemorySkillStore>,
    usage: Arc<InMemorySkillUsageStore>,
    log: Arc<InMemoryConversationLog>,
    feedback: Arc<InMemoryFeedbackStore>,
}

impl Agent {
    /// Takes what happens with a kind of work, on one day.
    async fn lives(&self, number: usize, work: &Work) -> Result<(), BoxError> {
        let who = Principal::default();
        let now = rockbot_core::Clock::now(&self.clock);
        let [first, second] = work.skills();
        let save = async |name: &str, content: String| -> Result<(), BoxError> {
            let skill = Skill::new(StorePath::new(name)?, content, now, Provenance::USER).with_summary(work.order());
            Ok(self.skills.save(&who, skill).await?)
        };
        let [figures, sending] = work.steps();
        match work.kind {
            Kind::Explained => {
                for part in ["a", "b"] {
                    let session = format!("c{number}{part}");
                    let said = LogEntry::new(session.as_str(), Role::User, work.explained(), now);
                    let said = said
                        .with_label(Label::USER)
                        .with_trust(rockbot_core::trust::Trust::User);
                    self.log.append(&who, vec![said]).await?;
                }
            }
            Kind::Halves => {
                save(&first, figures).await?;
                save(&second, sending).await?;
            }
            Kind::Corrected => {
                save(&first, wrong_step(work)).await?;
                let session = format!("c{number}");
                let used = SkillUsage::new(format!("u{number}"), StorePath::new(&first)?, session.as_str(), now);
                self.usage.append(&who, used).await?;
                let signal = FeedbackSignal::Correction;
                let entry = FeedbackEntry::new(format!("f{number}"), session.as_str(), signal, work.correction(), now);
                self.feedback.append(&who, entry).await?;
            }
        }
        Ok(())
    }

    /// Lets a day pass for each kind of work, with a cycle of dreams in which these passes apply all
    /// their plans.
    async fn dreams(&self, works: &[Work], model: Scribe, passes: &[DreamPass]) -> Result<(), BoxError> {
        let others = DreamPass::ALL.into_iter().filter(|pass| !passes.contains(pass));
        let options = DreamOptions::default()
            .with_disabled(others)
            .with_auto_apply(passes.iter().copied());
        let mut parts = Parts::new(AgentIdentity::new("dreamer"), Arc::new(self.clock.clone()), None);
        parts.provide::<dyn ChatClient>(Arc::new(model));
        parts.provide::<dyn SkillStore>(self.skills.clone());
        parts.provide::<dyn SkillUsageStore>(self.usage.clone());
        parts.provide::<dyn ConversationLog>(self.log.clone());
        parts.provide::<dyn FeedbackStore>(self.feedback.clone());
        parts.provide::<dyn IdSource>(Arc::new(SequentialIds::default()));
        let mut needs = Declarations::new(parts);
        // The cycles are begun below.
        let mut dreaming = Box::new(Dreaming::new().with_options(options.with_initial_delay(DAY * 365)));
        dreaming.declare(&mut needs)?;
        let declared = needs.merge();
        let running = dreaming.start(&declared.parts).await?;
        let dreams = declared.parts.require::<Dreams>()?;
        for (number, work) in works.iter().enumerate() {
            self.lives(number, work).await?;
            self.clock.advance(DAY);
            dreams.dream().await?;
        }
        running.stop().await;
        Ok(())
    }
}

/// Returns the figures of the next orders, after days with these passes. Of the answers of the model
/// so many percent are nonsense.
///
/// # Errors
///
/// Returns an error if a store fails.
pub async fn skills(seed: u64, nonsense: usize, passes: &[DreamPass]) -> Result<Score, BoxError> {
    let agent = Agent::default();
    agent.clock.set(Timestamp::from_millis(1_800_000_000_000));
    let all = works(seed);
    let model = Scribe {
        works: works(seed),
        nonsense,
    };
    agent.dreams(&all, model, passes).await?;
    let who = Principal::default();
    let recall = SkillRecall::new(agent.skills.clone());
    let mut score = Score::default();
    let live = agent.skills.list(&who).await?;
    score.count("libraries", 1);
    score.count("memories", live.iter().filter(|skill| skill.is_live()).count());
    for work in &all {
        let query = ContextQuery::new(who.clone(), "s".into(), "t".into(), work.order());
        let shown = recall.gather(&query).await?;
        let text: String = shown.iter().map(|item| format!("{}\n", item.text)).collect();
        let has_all = work.expected().iter().all(|person| text.contains(person.as_str()));
        let is_right = has_all && !text.contains(MADE_UP);
        let kind = match work.kind {
            Kind::Explained => "explained",
            Kind::Halves => "halves",
            Kind::Corrected => "corrected",
        };
        for (name, count) in [("questions", 1), ("right", usize::from(is_right))] {
            score.count(name, count);
            score.count(format!("{name}: {kind}"), count);
        }
        score.count("tokens", text.len() / 4);
    }
    Ok(score)
}
