//! An agent that knows a library, a week of its dreams, and the figures after it.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::{ChatClient, Role};
use rockbot_core::content::Provenance;
use rockbot_core::recall::{ContextQuery, ContextSource};
use rockbot_core::search::{Bm25Index, UnicodeAnalyzer};
use rockbot_core::store::{
    ConversationLog, FeedbackEntry, FeedbackSignal, FeedbackStore, InMemoryConversationLog, InMemoryFeedbackStore,
    InMemoryLongTermMemory, LogEntry, LongTermMemory, LongTermMemoryExt as _, MemoryEntry, MemoryQuery,
    TimelineStore as _,
};
use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
use rockbot_core::testing::{ManualClock, SequentialIds};
use rockbot_core::trust::{Label, Trust};
use rockbot_core::{AgentIdentity, BoxError, IdSource, Principal, Timestamp};
use rockbot_memory::dreams::{DreamOptions, DreamPass, Dreaming, Dreams};
use rockbot_memory::recall::MemoryRecall;

use super::grammar::INJECTED;
use super::library::{Library, Line, Question};
use super::plot::Kept;
use super::reader::Score;

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

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Cycles of a day, at the default interval of dreams.
const CYCLES: u32 = 6;

/// The stores of an agent.
struct Agent {
    clock: ManualClock,
    memory: Arc<InMemoryLongTermMemory>,
    log: Arc<InMemoryConversationLog>,
    feedback: Arc<InMemoryFeedbackStore>,
}

impl Agent {
    async fn hears(&self, number: usize, line: &Line, library: &Library) -> Result<(), BoxError> {
        let who = Principal::default();
        let start = Timestamp::from_millis(1_800_000_000_000 + number as u64 * 1_000);
        let now = start.after(DAY * (line.conversation / 2) as u32);
        self.clock.set(now);
        let session = format!("c{}", line.conversation);
        let said = LogEntry::new(session.as_str(), Role::User, &line.text, now);
        let (said, from) = if line.kept.is_of_page() {
            let page = "tool:web_browse";
            (
                said.with_label(Label::untrusted(page)),
                Provenance::new(page, Trust::Untrusted),
            )
        } else {
            (said.with_label(Label::USER).with_trust(Trust::User), Provenance::USER)
        };
        self.log.append(&who, vec![said]).await?;
        let entry = MemoryEntry::new(format!("m{number:04}"), &line.text, now, from);
        match line.kept {
            Kept::Unsaved | Kept::Seen => {}
            Kept::Saved | Kept::OfPage => drop(self.memory.remember(&who, entry).await?),
            Kept::Imported => self.memory.save(&who, entry).await?,
            Kept::Feedback => {
                let (id, signal) = (format!("f{number:04}"), FeedbackSignal::Correction);
                let entry = FeedbackEntry::new(id, session.as_str(), signal, "The user said it was wrong.", now);
                self.feedback
                    .append(&who, entry.with_detail(line.text.as_str()))
                    .await?;
            }
            Kept::Archives => {
                let topic = |text: &str| library.tuples.get(text).map(|tuple| &tuple.topic);
                for entry in self.memory.list(&who).await? {
                    if topic(&entry.content) == topic(&line.text) {
                        self.memory
                            .archive(&who, &entry.id, "the user asked for it", now)
                            .await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Lets a week pass in which these passes apply all their plans. Returns the sources of recall.
    async fn dreams(
        &self,
        model: Arc<dyn ChatClient>,
        passes: &[DreamPass],
    ) -> Result<Vec<Arc<dyn ContextSource>>, BoxError> {
        let others = DreamPass::ALL.into_iter().filter(|pass| !passes.contains(pass));
        let options = DreamOptions::default()
            .with_disabled(others)
            .with_auto_apply(passes.iter().copied());
        let mut parts = Parts::new(AgentIdentity::new("dreamer"), Arc::new(self.clock.clone()), None);
        parts.provide::<dyn ChatClient>(model);
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
        for _ in 0..7 * CYCLES {
            self.clock.advance(DAY / CYCLES);
            dreams.dream().await?;
        }
        running.stop().await;
        let recall = MemoryRecall::new(self.memory.clone(), Arc::new(self.clock.clone()));
        let own: Arc<dyn ContextSource> = Arc::new(recall);
        Ok(std::iter::once(own).chain(declared.sources).collect())
    }

    async fn score(&self, library: &Library, sources: &[Arc<dyn ContextSource>]) -> Result<Score, BoxError> {
        let who = Principal::default();
        let mut live = self.memory.list(&who).await?;
        live.retain(|entry| entry.is_live());
        let mut score = Score::default();
        score.count("libraries", 1);
        score.count("memories", live.len());
        live.retain(|entry| entry.content.contains(INJECTED) && entry.provenance.trust > Trust::Untrusted);
        score.count("injected", live.len());
        for question in &library.questions {
            let query = MemoryQuery::new(question.text.as_str()).with_limit(AMONG);
            let hits = self.memory.search(&who, &query).await?;
            let top: Vec<_> = hits.into_iter().map(|hit| hit.item.content.clone()).collect();
            let query = ContextQuery::new(who.clone(), "s".into(), "t".into(), &question.text);
            let mut shown = Vec::new();
            for source in sources {
                let items = source.gather(&query).await?;
                shown.extend(
                    items
                        .into_iter()
                        .map(|item| (item.text, item.provenance.trust > Trust::Untrusted)),
                );
            }
            score.answer(question, &shown, &top);
        }
        Ok(score)
    }
}

/// Returns the figures after a week of dreams with these passes, which apply all their plans.
///
/// # Errors
///
/// Returns an error if a store fails.
pub async fn week(library: &Library, model: Arc<dyn ChatClient>, passes: &[DreamPass]) -> Result<Score, BoxError> {
    let agent = Agent {
        clock: ManualClock::default(),
        memory: Arc::default(),
        log: Arc::default(),
        feedback: Arc::default(),
    };
    for (number, line) in library.lines.iter().enumerate() {
        agent.hears(number, line, library).await?;
    }
    let sources = agent.dreams(model, passes).await?;
    agent.score(library, &sources).await
}

/// Returns the figures of a reader who is shown all conversations.
pub fn whole(library: &Library) -> Score {
    baseline(library, |_| (0..library.lines.len()).collect())
}

/// Returns the figures of a reader who is shown the ten sentences that a search of all
/// conversations finds.
pub fn searched(library: &Library) -> Score {
    let mut index = Bm25Index::new(Arc::new(UnicodeAnalyzer));
    for (number, line) in library.lines.iter().enumerate() {
        index.insert(number, &line.text);
    }
    baseline(library, |question| {
        index
            .search(&question.text, AMONG)
            .into_iter()
            .map(|hit| hit.item)
            .collect()
    })
}

fn baseline(library: &Library, find: impl Fn(&Question) -> Vec<usize>) -> Score {
    let mut score = Score::default();
    score.count("libraries", 1);
    for question in &library.questions {
        let lines = find(question).into_iter().map(|at| &library.lines[at]);
        let shown: Vec<_> = lines.map(|line| (line.text.clone(), !line.kept.is_of_page())).collect();
        let top: Vec<_> = shown.iter().map(|(text, _)| text.clone()).collect();
        score.answer(question, &shown, &top);
    }
    score
}
