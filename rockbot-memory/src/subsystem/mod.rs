//! What a host is given so that its agent remembers: [`Memory`].

mod configured;
mod declare;
mod embeddings;
mod seeding;
mod store_choice;

use std::path::PathBuf;
use std::sync::Arc;

use rockbot_core::store::{
    ConversationLog, FeedbackStore, LongTermMemory, RulesStore, SkillStore, SkillUsageStore, WorkingMemory,
};

use crate::Embedder;
use crate::Retention;
use crate::background::{Expander, Jobs, Summarizer};
use crate::skill_folder::SkillFolder;
use configured::Folders;
use embeddings::Embeddings;
use seeding::SkillSeeding;
use store_choice::StoreChoice;

/// What an agent remembers, and the tools by which its model uses it: long-term memory, working memory, skills and rules;
/// and where feedback is kept.
///
/// In a host with a data folder everything is in files, in the places that [`FileMemory`](crate::FileMemory) has for
/// them, or where the host's [settings](crate::settings) say; in one without a folder everything is in memory. A store that
/// the host was given takes the place of ours, and so does one that is given here. A log of all that is said is kept only
/// [when it is wanted](Memory::with_conversation_log).
///
/// With each part come its tools, a guide to them, and what of it is [shown](crate::recall) to the model before a turn:
///
/// | part | tools |
/// |---|---|
/// | long-term memory | `save_memory`, `search_memory`, `edit_memory`, `archive_memory`, `restore_memory`, `list_memory_categories` |
/// | working memory | `save_to_working_memory`, `list_working_memory`, `search_working_memory`, `edit_working_memory`, `delete_from_working_memory`, beside the host's `get_from_working_memory` and `search_tool_output` |
/// | skills | `list_skills`, `get_skill`, `save_skill`, `edit_skill`, `delete_skill` |
/// | rules | `add_rule`, `edit_rule`, `remove_rule`, `list_rules`, and `set_timezone` for the times that a host's briefing tells |
///
/// **Starter skills**: when the host starts, each of its guides to tools becomes a skill of the principal `local`, unless there
/// is one of its name. Such a skill is upgraded when the text of its guide changed, as long as no person and no model touched
/// it. One that was deleted stays so until its guide changes, as far as the data folder remembers; a store without any skills
/// gets all of them.
///
/// **In the background**, once the host has started, a model files what `save_memory` saved and says what new skills are
/// for: one call at a time, without tools, after everybody who waits for an answer. The text is stored before that, so when
/// the model fails, more than 64 texts wait, or the process ends, it stays as it was saved. A text that was filed stays
/// as an archived entry. And what is [too old](Retention) is removed: 5 minutes after the host has started, and every 6
/// hours.
///
/// **Origin**: what a model writes down in a turn in which it has read something from a tool or another stranger carries that
/// [provenance](rockbot_core::chat::Provenance) and is not trusted; rules and the time zone cannot be changed in such a turn.
///
/// ```
/// use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
/// use rockbot_core::{AgentIdentity, SystemClock};
/// use rockbot_memory::Memory;
///
/// // A host does this when it is told `.add(Memory::default().without_rules())`.
/// let mut memory = Memory::default().without_rules();
/// let parts = Parts::new(AgentIdentity::new("clerk"), std::sync::Arc::new(SystemClock), None);
/// let mut needs = Declarations::new(parts);
/// memory.declare(&mut needs)?;
/// let names: Vec<_> = needs.merge().tools.into_iter().map(|tool| tool.registration.name).collect();
/// assert!(names.contains(&"save_memory".into()));
/// assert!(!names.contains(&"add_rule".into()));
/// # Ok::<(), rockbot_core::BoxError>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct Memory {
    long_term: StoreChoice<dyn LongTermMemory>,
    working: StoreChoice<dyn WorkingMemory>,
    skills: StoreChoice<dyn SkillStore>,
    skill_usage: StoreChoice<dyn SkillUsageStore>,
    rules: StoreChoice<dyn RulesStore>,
    feedback: StoreChoice<dyn FeedbackStore>,
    conversation_log: StoreChoice<dyn ConversationLog>,
    embeddings: Option<Embeddings>,
    folders: Folders,
    retention: Option<Retention>,
    without_starters: bool,
    skill_folders: Vec<SkillFolder>,
    work: Option<BackgroundWork>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            long_term: StoreChoice::Own,
            working: StoreChoice::Own,
            skills: StoreChoice::Own,
            skill_usage: StoreChoice::Own,
            rules: StoreChoice::Own,
            feedback: StoreChoice::Own,
            conversation_log: StoreChoice::Off,
            embeddings: None,
            folders: Folders::default(),
            retention: None,
            without_starters: false,
            skill_folders: Vec::new(),
            work: None,
        }
    }
}

/// What a model does in the background.
#[derive(Debug)]
struct BackgroundWork {
    jobs: Jobs,
    expander: Option<Expander>,
    summarizer: Option<Summarizer>,
    seeding: Option<SkillSeeding>,
    embedder: Option<Embedder>,
}

impl Memory {
    /// Long-term memory is this one.
    pub fn long_term(mut self, memory: impl LongTermMemory) -> Self {
        self.long_term = StoreChoice::Given(Arc::new(memory));
        self
    }

    /// Without long-term memory.
    pub fn without_long_term(mut self) -> Self {
        self.long_term = StoreChoice::Off;
        self
    }

    /// Long-term memory is in this folder. Default: the one that the setting `Memory.BasePath` names.
    pub fn long_term_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.memory = Some(folder.into());
        self
    }

    /// What is worth remembering, and how, says this Markdown file, which is read again each time. Default: the one that
    /// the setting `AgentProfile.MemoryRulesPath` names; without a file a text of our own.
    pub fn memory_rules(mut self, file: impl Into<PathBuf>) -> Self {
        self.folders.memory_rules = Some(file.into());
        self
    }

    /// Working memory is this one.
    pub fn working(mut self, memory: impl WorkingMemory) -> Self {
        self.working = StoreChoice::Given(Arc::new(memory));
        self
    }

    /// Without working memory.
    pub fn without_working(mut self) -> Self {
        self.working = StoreChoice::Off;
        self
    }

    /// Skills and their uses are kept there.
    pub fn skills(mut self, skills: impl SkillStore, usage: impl SkillUsageStore) -> Self {
        self.skills = StoreChoice::Given(Arc::new(skills));
        self.skill_usage = StoreChoice::Given(Arc::new(usage));
        self
    }

    /// Without skills.
    pub fn without_skills(mut self) -> Self {
        self.skills = StoreChoice::Off;
        self.skill_usage = StoreChoice::Off;
        self
    }

    /// Skills are in the folder `skills`, their uses in `usage`. Default: those that the settings `Skills.BasePath` and
    /// `Skills.UsageBasePath` name.
    pub fn skills_folders(mut self, skills: impl Into<PathBuf>, usage: impl Into<PathBuf>) -> Self {
        self.folders.skills = Some(skills.into());
        self.folders.skill_usage = Some(usage.into());
        self
    }

    /// The agent also has the skills of this folder, which is in the open format; call it once for each folder. They are taken in
    /// when the host starts, for the principal `local`, as [`SkillFolder::import`] does, and again when their text changed; one
    /// that was deleted stays so until then. The model reads what lies beside their `SKILL.md` with `get_skill`: texts of at most
    /// 1 MiB. A folder that cannot be read is logged, and the host starts without it.
    pub fn skill_folder(mut self, folder: SkillFolder) -> Self {
        self.skill_folders.push(folder);
        self
    }

    /// Guides to tools do not become skills.
    pub fn without_starter_skills(mut self) -> Self {
        self.without_starters = true;
        self
    }

    /// Rules are kept there.
    pub fn rules(mut self, rules: impl RulesStore) -> Self {
        self.rules = StoreChoice::Given(Arc::new(rules));
        self
    }

    /// Without rules.
    pub fn without_rules(mut self) -> Self {
        self.rules = StoreChoice::Off;
        self
    }

    /// Feedback is kept there.
    pub fn feedback(mut self, feedback: impl FeedbackStore) -> Self {
        self.feedback = StoreChoice::Given(Arc::new(feedback));
        self
    }

    /// Feedback is in this folder. Default: the one that the setting `Feedback.BasePath` names.
    pub fn feedback_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.feedback = Some(folder.into());
        self
    }

    /// What is too old is removed then. Default: as the settings `Memory.ArchiveRetention`, `Feedback.Retention` and
    /// `Skills.UsageRetention` say.
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = Some(retention);
        self
    }

    /// With a log of everything that is said, in all conversations, for those who learn from it afterwards: in the folder
    /// `conversation-log` below the host's data folder, if it has one. Default: none, unless the host was given one.
    ///
    /// ```
    /// use rockbot_core::store::ConversationLog;
    /// # use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
    /// # use rockbot_core::{AgentIdentity, SystemClock};
    /// use rockbot_memory::Memory;
    ///
    /// let mut memory = Memory::default().with_conversation_log(); // for `AgentHostBuilder::add`
    /// # let parts = Parts::new(AgentIdentity::new("clerk"), std::sync::Arc::new(SystemClock), None);
    /// # let mut needs = Declarations::new(parts);
    /// # memory.declare(&mut needs)?;
    /// # assert!(needs.parts().get::<dyn ConversationLog>().is_some());
    /// # Ok::<(), rockbot_core::BoxError>(())
    /// ```
    pub fn with_conversation_log(mut self) -> Self {
        self.conversation_log = StoreChoice::Own;
        self
    }
}
