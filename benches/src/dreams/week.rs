//! An agent that knows a library, a week of its dreams, and the figures before and after.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::{ChatClient, Role};
use rockbot_core::content::Provenance;
use rockbot_core::recall::{ContextQuery, ContextSource};
use rockbot_core::search::{Bm25Index, UnicodeAnalyzer};
use rockbot_core::store::{
    ConversationLog, FeedbackEntry, FeedbackSignal, FeedbackStore, InMemoryConversationLog, InMemoryFeedbackStore,
    InMemoryLongTermMemory, LogEntry, LongTermMemory, LongTermMemoryExt, MemoryEntry, MemoryQuery, TimelineStore as _,
};
use rockbot_core::subsystem::{Declarations, Parts, Subsystem};
use rockbot_core::testing::{ManualClock, SequentialIds};
use rockbot_core::trust::{Label, Trust};
use rockbot_core::{AgentIdentity, BoxError, Clock, IdSource, Principal, Timestamp};
use rockbot_memory::dreams::{DreamOptions, DreamPass, Dreaming, Dreams};
use rockbot_memory::recall::MemoryRecall;

use super::grammar::INJECTED;
use super::library::{Library, Line, Question};
use super::model::Dreamer;
use super::reader::{Score, Shown};
use super::story::{Author, Kept, Told};

/// Passes that change what recall shows, each measured alone.
pub const MEASURED: [DreamPass; 6] = [
    DreamPass::DuplicateFold,
    DreamPass::MemoryConsolidation,
    DreamPass::ContradictionSweep,
    DreamPass::PreferenceInference,
    DreamPass::AntiPatterns,
    DreamPass::MemoryMining,
];

/// Number of hits among which a value counts as found.
const AMONG: usize = 10;

/// Interval of cycles, the default of dreams.
const INTERVAL: Duration = Duration::from_secs(4 * 60 * 60);

/// Cycles of a week.
const CYCLES: usize = 42;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The start of the first day.
const START: u64 = 1_800_000_000_000;

/// The stores of an agent.
struct Agent {
    clock: ManualClock,
    memory: Arc<InMemoryLongTermMemory>,
    log: Arc<InMemoryConversationLog>,
    feedback: Arc<InMemoryFeedbackStore>,
    /// Recall of memories, and of the episodes behind views.
    sources: Vec<Arc<dyn ContextSource>>,
}

impl Agent {
    /// Creates an agent that has had the conversations of a library.
    async fn new(library: &Library) -> Result<Self, BoxError> {
        let clock = ManualClock::new(Timestamp::from_millis(START));
        let memory = Arc::new(InMemoryLongTermMemory::new());
        let recall = MemoryRecall::new(memory.clone(), Arc::new(clock.clone()));
        let agent = Self {
            clock,
            memory,
            log: Arc::default(),
            feedback: Arc::default(),
            sources: vec![Arc::new(recall)],
        };
        for (number, line) in library.lines.iter().enumerate() {
            agent
                .clock
                .set(Timestamp::from_millis(START + number as u64 * 1_000).after(DAY * line.day as u32));
            agent.hears(number, line).await?;
        }
        Ok(agent)
    }

    async fn hears(&self, number: usize, Line { session, told, .. }: &Line) -> Result<(), BoxError> {
        let who = Principal::default();
        let now = self.clock.now();
        let Told { author, text, kept } = told;
        let (from, trust, label, role) = match author {
            Author::User => (Provenance::USER, Trust::User, Label::USER, Role::User),
            Author::Page => {
                let page = Provenance::new("tool:web_browse", Trust::Untrusted);
                (
                    page,
                    Trust::Untrusted,
                    Label::untrusted("tool:web_browse"),
                    Role::Assistant,
                )
            }
        };
        let said = LogEntry::new(session.as_str(), role, text, now)
            .with_label(label)
            .with_trust(trust);
        self.log.append(&who, vec![said]).await?;
        let entry = MemoryEntry::new(format!("m{number:04}"), text, now, from);
        match kept {
            Kept::Unsaved => {}
            Kept::Saved => drop(self.memory.remember(&who, entry).await?),
            Kept::Imported => self.memory.save(&who, entry).await?,
            Kept::Feedback => {
                let signal = FeedbackSignal::Correction;
                let entry = FeedbackEntry::new(
                    format!("f{number:04}"),
                    session.as_str(),
                    signal,
                    "The user said it was wrong.",
                    now,
                );
                self.feedback.append(&who, entry.with_detail(text.clone())).await?;
            }
            Kept::Archives(text) => {
                let all = self.memory.list(&who).await?;
                if let Some(entry) = all.iter().find(|entry| entry.content == *text) {
                    self.memory
                        .archive(&who, &entry.id, "the user asked for it", now)
                        .await?;
                }
            }
        }
        Ok(())
    }

    /// Lets a week pass in which these passes apply all their plans.
    async fn dreams(&mut self, model: Dreamer, passes: &[DreamPass]) -> Result<(), BoxError> {
        let others = DreamPass::ALL.into_iter().filter(|pass| !passes.contains(pass));
        let options = DreamOptions::default()
            .with_disabled(others)
            .with_auto_apply(passes.iter().copied());
        let mut parts = Parts::new(AgentIdentity::new("dreamer"), Arc::new(self.clock.clone()), None);
        parts.provide::<dyn ChatClient>(Arc::new(model));
        parts.provide::<dyn LongTermMemory>(self.memory.clone());
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
        for _ in 0..CYCLES {
            self.clock.advance(INTERVAL);
            dreams.dream().await?;
        }
        running.stop().await;
        self.sources.extend(declared.sources);
        Ok(())
    }

    async fn shown(&self, question: &Question) -> Result<Vec<Shown>, BoxError> {
        let query = ContextQuery::new(Principal::default(), "s".into(), "t".into(), &question.text);
        let mut shown = Vec::new();
        for source in &self.sources {
            shown.extend(
                source
                    .gather(&query)
                    .await?
                    .into_iter()
                    .map(|item| Shown::new(item.text)),
            );
        }
        Ok(shown)
    }

    async fn score(&self, library: &Library) -> Result<Score, BoxError> {
        let all = self.memory.list(&Principal::default()).await?;
        let live: Vec<_> = all.iter().filter(|entry| entry.is_live()).collect();
        let injected = live
            .iter()
            .filter(|entry| entry.content.contains(INJECTED) && entry.provenance.trust > Trust::Untrusted);
        let mut score = Score::new(live.len(), injected.count());
        for question in &library.questions {
            let query = MemoryQuery::new(question.text.as_str()).with_limit(AMONG);
            let hits = self.memory.search(&Principal::default(), &query).await?;
            let top: Vec<_> = hits.into_iter().map(|hit| hit.item.content.clone()).collect();
            score.add(question, &self.shown(question).await?, &top);
        }
        Ok(score)
    }
}

/// Returns the figures of an agent that does not dream.
///
/// # Errors
///
/// Returns an error if a store fails.
pub async fn before(library: &Library) -> Result<Score, BoxError> {
    Agent::new(library).await?.score(library).await
}

/// Returns the figures after a week of dreams with these passes.
///
/// # Errors
///
/// Returns an error if a store fails.
pub async fn week(library: &Library, model: Dreamer, passes: &[DreamPass]) -> Result<Score, BoxError> {
    let mut agent = Agent::new(library).await?;
    agent.dreams(model, passes).await?;
    agent.score(library).await
}

/// Returns the figures of a reader who is shown all conversations.
pub fn whole(library: &Library) -> Score {
    baseline(library, |_, lines| lines.to_vec())
}

/// Returns the figures of a reader who is shown the ten sentences that a search of all
/// conversations finds.
pub fn searched(library: &Library) -> Score {
    let mut index = Bm25Index::new(Arc::new(UnicodeAnalyzer));
    for (number, line) in library.lines.iter().enumerate() {
        index.insert(number, &line.told.text);
    }
    baseline(library, |question, lines| {
        let hits = index.search(&question.text, AMONG);
        hits.into_iter().map(|hit| lines[hit.item].clone()).collect()
    })
}

fn baseline(library: &Library, find: impl Fn(&Question, &[Shown]) -> Vec<Shown>) -> Score {
    let line = |line: &Line| Shown {
        text: line.told.text.clone(),
        counts: line.told.author == Author::User,
    };
    let lines: Vec<_> = library.lines.iter().map(line).collect();
    let mut score = Score::new(lines.len(), 0);
    for question in &library.questions {
        let shown = find(question, &lines);
        let top: Vec<_> = shown.iter().map(|line| line.text.clone()).collect();
        score.add(question, &shown, &top);
    }
    score
}
