//! Declares the parts of [`Memory`] to a host, and starts it.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::OptionFuture;
use rockbot_core::chat::ChatClient;
use rockbot_core::config::Config;
use rockbot_core::store::{
    ConversationLog, InMemoryConversationLog, InMemoryLongTermMemory, InMemoryRulesStore, InMemorySkillStore,
    InMemorySkillUsageStore, InMemoryWorkingMemory, LongTermMemory, RulesStore, SkillStore, SkillUsageStore,
    VectorCache, WorkingMemory,
};
use rockbot_core::subsystem::{Declarations, Parts, Running, RunningTask, Stage, Subsystem};
use rockbot_core::tool::ToolGuides;
use rockbot_core::turn::TurnRunner;
use rockbot_core::{BoxError, IdSource, RandomIds};
use rockbot_store::file::{
    FileConversationLog, FileLongTermMemory, FileRulesStore, FileSkillStore, FileSkillUsageStore, FileWorkingMemory,
};
use rockbot_store::{FileOptions, WorkingMemoryOptions};

use super::configured::open_feedback;
use super::seeding::SkillSeeding;
use super::{BackgroundWork, Memory};
use crate::Embedder;
use crate::background::{BackgroundQueue, BackgroundWorker, Expander, RetentionPurge, Summarizer};
use crate::recall::{MemoryRecall, NoteRecall, RuleRecall, SkillRecall};
use crate::skill_service::SkillService;
use crate::tools::long_term::LongTermTools;
use crate::tools::rules::RuleTools;
use crate::tools::skills::SkillTools;
use crate::tools::working::WorkingTools;
use crate::tools::{self, ToolDeps};

#[async_trait]
impl Subsystem for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    /// The stores are open by then; what is left is seeding skills.
    fn stage(&self) -> Stage {
        Stage::Skills
    }

    fn declare(&mut self, needs: &mut Declarations) -> Result<(), BoxError> {
        let config = needs.parts().get::<Config>().unwrap_or_default();
        self.complete(&config, needs.parts().data_dir())?;
        self.declare_costs(needs);
        let (queue, jobs) = BackgroundQueue::new();
        let shared = ToolContext {
            queue,
            ids: needs
                .parts()
                .get::<dyn IdSource>()
                .unwrap_or_else(|| Arc::new(RandomIds)),
            deps: ToolDeps {
                clock: needs.parts().clock().clone(),
            },
        };
        let (expander, embedder) = self.declare_long_term(&shared, needs)?.unzip();
        let service = self.declare_skills(&shared, needs)?;
        let offers = !self.without_starters || !self.skill_folders.is_empty();
        let seeds = service.clone().filter(|_| offers);
        let seeding = seeds.map(|service| SkillSeeding::open(service, needs.parts().data_dir()));
        self.work = Some(BackgroundWork {
            jobs,
            expander,
            summarizer: service.map(Summarizer),
            seeding: seeding.transpose()?,
            embedder: embedder.flatten(),
        });
        self.declare_working(&shared, needs)?;
        self.declare_rules(&shared, needs)?;
        self.declare_feedback(needs)?;
        self.declare_conversation_log(needs)
    }

    async fn start(mut self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let work = self.work.take().expect("a subsystem declares before it starts");
        let guides = parts.get::<ToolGuides>().filter(|_| !self.without_starters);
        if let Some(seeding) = work.seeding
            && let Err(error) = seeding.begin(guides.as_deref(), &self.skill_folders).await
        {
            // Skills are optional: the agent works without them.
            tracing::warn!(%error, "not all skills could be taken in when the host started");
        }
        let purge = RetentionPurge {
            retention: self.retention.unwrap_or_default(),
            clock: parts.clock().clone(),
            long_term: self.long_term.part(parts),
            feedback: self.feedback.part(parts),
            skill_usage: self.skill_usage.part(parts),
        };
        let worker = parts.get::<dyn ChatClient>().map(|chat| BackgroundWorker {
            chat,
            turns: parts.get::<dyn TurnRunner>(),
            expander: work.expander,
            summarizer: work.summarizer,
            jobs: work.jobs,
        });
        let embedder = work.embedder;
        let (running, task) = RunningTask::new(async move |stop| {
            let worker = OptionFuture::from(worker.map(|worker| worker.run(&stop)));
            let embedding = OptionFuture::from(embedder.map(|embedder| embedder.run(stop.clone())));
            tokio::join!(purge.run(&stop), worker, embedding);
        });
        tokio::spawn(task);
        Ok(Box::new(running))
    }
}

/// The dependencies shared by the parts.
struct ToolContext {
    queue: BackgroundQueue,
    ids: Arc<dyn IdSource>,
    deps: ToolDeps,
}

impl Memory {
    fn declare_long_term(
        &self,
        shared: &ToolContext,
        needs: &mut Declarations,
    ) -> Result<Option<(Expander, Option<Embedder>)>, BoxError> {
        let open = |parts: &Parts| -> Result<Arc<dyn LongTermMemory>, BoxError> {
            Ok(match &self.folders.memory {
                Some(folder) => Arc::new(FileLongTermMemory::open_with(folder, options(parts))?),
                None => Arc::new(InMemoryLongTermMemory::new()),
            })
        };
        let mut embedder = None;
        let data_dir = needs.parts().data_dir().map(Path::to_owned);
        let cache = needs.parts().get::<dyn VectorCache>();
        let surround = |memory| {
            let Some(embeddings) = &self.embeddings else {
                return Ok(memory);
            };
            let (memory, work) = embeddings.around(memory, data_dir.as_deref(), cache)?;
            embedder = Some(work);
            Ok(memory)
        };
        let Some(memory) = self.long_term.resolve_wrapped(needs, open, surround)? else {
            return Ok(None);
        };
        let family = LongTermTools {
            memory: memory.clone(),
            queue: shared.queue.clone(),
            ids: shared.ids.clone(),
            deps: shared.deps.clone(),
        };
        tools::long_term::tools(&family)
            .into_iter()
            .for_each(|tool| needs.tool(tool));
        needs.context_source(MemoryRecall::new(memory.clone(), shared.deps.clock.clone()));
        let expander = Expander {
            memory,
            clock: shared.deps.clock.clone(),
            ids: shared.ids.clone(),
            rules: self.folders.memory_rules.clone(),
        };
        Ok(Some((expander, embedder)))
    }

    fn declare_skills(
        &self,
        shared: &ToolContext,
        needs: &mut Declarations,
    ) -> Result<Option<Arc<SkillService>>, BoxError> {
        let open = |parts: &Parts| -> Result<Arc<dyn SkillStore>, BoxError> {
            Ok(match &self.folders.skills {
                Some(folder) => Arc::new(FileSkillStore::open_with(folder, options(parts))?),
                None => Arc::new(InMemorySkillStore::new()),
            })
        };
        let Some(skills) = self.skills.resolve(needs, open)? else {
            return Ok(None);
        };
        let open = |_: &Parts| -> Result<Arc<dyn SkillUsageStore>, BoxError> {
            Ok(match &self.folders.skill_usage {
                Some(folder) => Arc::new(FileSkillUsageStore::open(folder)?),
                None => Arc::new(InMemorySkillUsageStore::new()),
            })
        };
        let usage = self.skill_usage.resolve(needs, open)?;
        let guides = needs.parts().get::<ToolGuides>();
        let service = SkillService::new(skills.clone(), usage, shared.deps.clock.clone());
        let service = Arc::new(service.with_guides(guides.clone()));
        let family = SkillTools {
            service: service.clone(),
            queue: shared.queue.clone(),
            ids: shared.ids.clone(),
        };
        tools::skills::tools(&family)
            .into_iter()
            .for_each(|tool| needs.tool(tool));
        let recall = SkillRecall::new(skills);
        let recall = match guides {
            Some(guides) => recall.with_guides(guides),
            None => recall,
        };
        needs.context_source(match &service.usage {
            Some(usage) => recall.with_usage(usage.clone(), shared.deps.clock.clone()),
            None => recall,
        });
        Ok(Some(service))
    }

    fn declare_working(&self, shared: &ToolContext, needs: &mut Declarations) -> Result<(), BoxError> {
        let open = |parts: &Parts| -> Result<Arc<dyn WorkingMemory>, BoxError> {
            let clock = parts.clock().clone();
            let Some(folder) = parts.data_dir() else {
                return Ok(Arc::new(InMemoryWorkingMemory::new().with_clock(clock)));
            };
            let options = WorkingMemoryOptions::default().with_clock(clock);
            Ok(Arc::new(FileWorkingMemory::open_with(
                folder.join("working-memory"),
                options,
            )?))
        };
        if let Some(memory) = self.working.resolve(needs, open)? {
            let deps = shared.deps.clone();
            needs.context_source(NoteRecall::new(memory.clone(), deps.clock.clone()));
            tools::working::tools(&WorkingTools { memory, deps })
                .into_iter()
                .for_each(|tool| needs.tool(tool));
        }
        Ok(())
    }

    fn declare_rules(&self, shared: &ToolContext, needs: &mut Declarations) -> Result<(), BoxError> {
        let open = |parts: &Parts| -> Result<Arc<dyn RulesStore>, BoxError> {
            Ok(match parts.data_dir() {
                Some(folder) => Arc::new(FileRulesStore::open(folder)?),
                None => Arc::new(InMemoryRulesStore::new()),
            })
        };
        if let Some(rules) = self.rules.resolve(needs, open)? {
            let deps = shared.deps.clone();
            needs.context_source(RuleRecall::new(rules.clone()));
            tools::rules::tools(&RuleTools { rules, deps })
                .into_iter()
                .for_each(|tool| needs.tool(tool));
        }
        Ok(())
    }

    fn declare_feedback(&self, needs: &mut Declarations) -> Result<(), BoxError> {
        let open = |_: &Parts| open_feedback(self.folders.feedback.as_deref());
        self.feedback.resolve(needs, open).map(drop)
    }

    fn declare_conversation_log(&self, needs: &mut Declarations) -> Result<(), BoxError> {
        let open = |parts: &Parts| -> Result<Arc<dyn ConversationLog>, BoxError> {
            Ok(match parts.data_dir() {
                Some(folder) => Arc::new(FileConversationLog::open(folder.join("conversation-log"))?),
                None => Arc::new(InMemoryConversationLog::new()),
            })
        };
        self.conversation_log.resolve(needs, open).map(drop)
    }
}

fn options(parts: &Parts) -> FileOptions {
    FileOptions::default().with_clock(parts.clock().clone())
}
