//! What [`Memory`] gives a host, and how it starts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::OptionFuture;
use rockbot_core::chat::ChatClient;
use rockbot_core::store::{
    FeedbackStore, InMemoryFeedbackStore, InMemoryLongTermMemory, InMemoryRulesStore, InMemorySkillStore,
    InMemorySkillUsageStore, InMemoryWorkingMemory, LongTermMemory, RulesStore, SkillStore, SkillUsageStore,
    WorkingLimits, WorkingMemory,
};
use rockbot_core::subsystem::{Idle, Needs, Parts, Running, Stage, Subsystem};
use rockbot_core::{BoxError, IdSource, RandomIds};

use super::{Embeddings, Memory, Work};
use crate::background::{Expander, Queue, Summarizer, Worker};
use crate::recall::{MemoryRecall, NoteRecall, RuleRecall, SkillRecall};
use crate::tools::long_term::LongTerm;
use crate::tools::rules::Rules;
use crate::tools::skills::{Shelf, Skills};
use crate::tools::working::Working;
use crate::tools::{self, Common};
use crate::{
    Embedder, FileFeedbackStore, FileLongTermMemory, FileOptions, FileRulesStore, FileSkillStore, FileSkillUsageStore,
    FileWorkingMemory, SemanticMemory, SemanticMemoryOptions, WorkingMemoryOptions,
};

#[async_trait]
impl Subsystem for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn stage(&self) -> Stage {
        Stage::Memory
    }

    fn declare(&mut self, needs: &mut Needs) -> Result<(), BoxError> {
        let (queue, jobs) = Queue::new();
        let shared = Shared {
            queue,
            ids: needs
                .parts()
                .get::<dyn IdSource>()
                .unwrap_or_else(|| Arc::new(RandomIds)),
            common: Common {
                clock: needs.parts().clock().clone(),
                readings: Arc::default(),
            },
        };
        let (expander, embedder) = self.declare_long_term(&shared, needs)?.unzip();
        self.work = Some(Work {
            jobs,
            expander,
            summarizer: self.declare_skills(&shared, needs)?,
            embedder: embedder.flatten(),
        });
        self.declare_working(&shared, needs)?;
        self.declare_rules(&shared, needs)?;
        self.declare_feedback(needs)
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let Some(work) = self.work else {
            return Ok(Box::new(Idle));
        };
        let worker = |chat| Worker {
            chat,
            expander: work.expander,
            summarizer: work.summarizer,
        };
        let worker = parts.get::<dyn ChatClient>().map(worker);
        if worker.is_none() && work.embedder.is_none() {
            return Ok(Box::new(Idle));
        }
        Ok(Box::new(crate::work::Work::spawn(|stop| async move {
            let jobs = worker.map(|worker| worker.run(work.jobs, stop.clone()));
            let embedding = work.embedder.map(|embedder| embedder.run(stop.clone()));
            tokio::join!(OptionFuture::from(jobs), OptionFuture::from(embedding));
        })))
    }
}

/// What the parts share.
struct Shared {
    queue: Queue,
    ids: Arc<dyn IdSource>,
    common: Common,
}

impl Memory {
    fn declare_long_term(
        &self,
        shared: &Shared,
        needs: &mut Needs,
    ) -> Result<Option<(Expander, Option<Embedder>)>, BoxError> {
        let folders = &self.folders;
        let open = |parts: &Parts| -> Result<Arc<dyn LongTermMemory>, BoxError> {
            Ok(match below(parts.data_dir(), folders.memory.as_deref(), "memory") {
                Some(folder) => Arc::new(FileLongTermMemory::open_with(folder, options(parts))?),
                None => Arc::new(InMemoryLongTermMemory::new()),
            })
        };
        let (mut embedder, data_dir) = (None, needs.parts().data_dir().map(Path::to_owned));
        let surround = |memory| self.embedded(memory, data_dir.as_deref(), &mut embedder);
        let Some(memory) = self.long_term.settle_within(needs, open, surround)? else {
            return Ok(None);
        };
        let family = LongTerm {
            memory: memory.clone(),
            queue: shared.queue.clone(),
            ids: shared.ids.clone(),
            common: shared.common.clone(),
        };
        tools::long_term::tools(&family)
            .into_iter()
            .for_each(|tool| needs.tool(tool));
        needs.guide(tools::guides::memory());
        needs.context(MemoryRecall::new(memory.clone(), shared.common.clock.clone()));
        let rules = folders.memory_rules.as_deref();
        let expander = Expander {
            memory,
            clock: shared.common.clock.clone(),
            ids: shared.ids.clone(),
            rules: below(needs.parts().data_dir(), rules, "memory-rules.md"),
        };
        Ok(Some((expander, embedder)))
    }

    /// The memory, found by its meaning if that is wanted.
    fn embedded(
        &self,
        memory: Arc<dyn LongTermMemory>,
        data_dir: Option<&Path>,
        embedder: &mut Option<Embedder>,
    ) -> Result<Arc<dyn LongTermMemory>, BoxError> {
        let Some(Embeddings { client, options }) = &self.embeddings else {
            return Ok(memory);
        };
        let options = SemanticMemoryOptions {
            folder: below(data_dir, options.folder.as_deref(), "embeddings"),
            ..options.clone()
        };
        let (memory, work) = SemanticMemory::open(memory, client.clone(), options)?;
        *embedder = Some(work);
        Ok(Arc::new(memory))
    }

    fn declare_skills(&self, shared: &Shared, needs: &mut Needs) -> Result<Option<Summarizer>, BoxError> {
        let open = |parts: &Parts| -> Result<Arc<dyn SkillStore>, BoxError> {
            Ok(
                match below(parts.data_dir(), self.folders.skills.as_deref(), "skills") {
                    Some(folder) => Arc::new(FileSkillStore::open_with(folder, options(parts))?),
                    None => Arc::new(InMemorySkillStore::new()),
                },
            )
        };
        let Some(skills) = self.skills.settle(needs, open)? else {
            return Ok(None);
        };
        let open = |parts: &Parts| -> Result<Arc<dyn SkillUsageStore>, BoxError> {
            Ok(
                match below(parts.data_dir(), self.folders.skill_usage.as_deref(), "skill-usage") {
                    Some(folder) => Arc::new(FileSkillUsageStore::open(folder)?),
                    None => Arc::new(InMemorySkillUsageStore::new()),
                },
            )
        };
        let usage = self.skill_usage.settle(needs, open)?;
        let shelf = Arc::new(Shelf::new(skills.clone(), usage, shared.common.clock.clone()));
        let family = Skills {
            shelf: shelf.clone(),
            queue: shared.queue.clone(),
            ids: shared.ids.clone(),
            common: shared.common.clone(),
        };
        tools::skills::tools(&family)
            .into_iter()
            .for_each(|tool| needs.tool(tool));
        needs.guide(tools::guides::skills());
        needs.context(SkillRecall::new(skills));
        Ok(Some(Summarizer(shelf)))
    }

    fn declare_working(&self, shared: &Shared, needs: &mut Needs) -> Result<(), BoxError> {
        let open = |parts: &Parts| -> Result<Arc<dyn WorkingMemory>, BoxError> {
            let clock = parts.clock().clone();
            let Some(folder) = below(parts.data_dir(), None, "working-memory") else {
                return Ok(Arc::new(InMemoryWorkingMemory::new().with_clock(clock)));
            };
            let limits = WorkingLimits::default();
            let memory = FileWorkingMemory::open_with(folder, WorkingMemoryOptions { limits, clock })?;
            Ok(Arc::new(memory))
        };
        if let Some(memory) = self.working.settle(needs, open)? {
            let common = shared.common.clone();
            needs.context(NoteRecall::new(memory.clone(), common.clock.clone()));
            tools::working::tools(&Working { memory, common })
                .into_iter()
                .for_each(|tool| needs.tool(tool));
            needs.guide(tools::guides::working_memory());
        }
        Ok(())
    }

    fn declare_rules(&self, shared: &Shared, needs: &mut Needs) -> Result<(), BoxError> {
        let open = |parts: &Parts| -> Result<Arc<dyn RulesStore>, BoxError> {
            Ok(match parts.data_dir() {
                Some(folder) => Arc::new(FileRulesStore::open(folder)?),
                None => Arc::new(InMemoryRulesStore::new()),
            })
        };
        if let Some(rules) = self.rules.settle(needs, open)? {
            let common = shared.common.clone();
            needs.context(RuleRecall::new(rules.clone()));
            tools::rules::tools(&Rules { rules, common })
                .into_iter()
                .for_each(|tool| needs.tool(tool));
            needs.guide(tools::guides::rules());
        }
        Ok(())
    }

    fn declare_feedback(&self, needs: &mut Needs) -> Result<(), BoxError> {
        let open = |parts: &Parts| -> Result<Arc<dyn FeedbackStore>, BoxError> {
            Ok(
                match below(parts.data_dir(), self.folders.feedback.as_deref(), "feedback") {
                    Some(folder) => Arc::new(FileFeedbackStore::open(folder)?),
                    None => Arc::new(InMemoryFeedbackStore::new()),
                },
            )
        };
        self.feedback.settle(needs, open).map(drop)
    }
}

/// The path that was chosen, or the one of this name in the data folder.
fn below(data_dir: Option<&Path>, chosen: Option<&Path>, name: &str) -> Option<PathBuf> {
    let chosen = chosen.map(Path::to_owned);
    chosen.or_else(|| data_dir.map(|folder| folder.join(name)))
}

fn options(parts: &Parts) -> FileOptions {
    FileOptions {
        clock: parts.clock().clone(),
    }
}
