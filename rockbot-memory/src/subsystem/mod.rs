//! The subsystem that gives an agent its memory: [`Memory`].

mod configured;
mod costs;
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
pub(crate) use configured::{below, open_feedback};
use embeddings::Embeddings;
use seeding::SkillSeeding;
use store_choice::StoreChoice;

/// The memory of an agent, and the tools by which its model uses it: long-term memory, working
/// memory, skills and rules; and the store of feedback.
///
/// In a host with a data folder the stores are files, in the places that
/// [`FileMemory`](crate::FileMemory) defines or the host's [settings](crate::settings) name;
/// without a data folder they are in memory. A store given to the host or to this subsystem takes
/// precedence. The conversation log is kept only [on request](Memory::with_conversation_log).
///
/// Each part brings its tools and a source of [recall](crate::recall). Tools that few
/// conversations need are shown to the model [on demand](rockbot_core::tool::ToolExposure),
/// together with a guide:
///
/// | part | tools |
/// |---|---|
/// | long-term memory | `save_memory`, `search_memory`; on demand `archive_memory`, also after a search, and `restore_memory` |
/// | working memory | on demand `save_to_working_memory`, `list_working_memory`, `search_working_memory`, `edit_working_memory`, `delete_from_working_memory`, beside the host's `get_from_working_memory` and `search_tool_output` |
/// | skills | `get_skill`, once there is a skill or a guide; on demand `save_skill`, `edit_skill`, `delete_skill`, `restore_skill` |
/// | rules | `change_rules`; on demand `set_timezone` for the times in a host's briefing |
///
/// **Starter skills**: at start, each guide to tools of the host becomes a skill of the principal
/// `local`, unless a skill has its name. Such a skill is upgraded when the text of its guide
/// changes, as long as neither a person nor a model has edited it. A deleted one stays deleted
/// until its guide changes, as recorded in the data folder; a store without any skills gets all
/// of them.
///
/// **Background work**, once the host has started: a model files the texts of `save_memory` and
/// summarizes new skills, one call at a time, without tools, at the lowest priority. Texts are
/// stored before that: when the model fails, more than 64 texts wait, or the process ends, they
/// stay as they were saved. A filed text stays as an archived entry. Entries beyond their
/// [retention period](Retention) are purged 5 minutes after start and every 6 hours.
///
/// **Taint**: a text that a model saves in a turn that has read from a tool or another untrusted
/// source carries that [provenance](rockbot_core::chat::Provenance) and is not trusted; rules and
/// the time zone cannot be changed in such a turn.
///
/// # Examples
///
/// ```
/// use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
/// use rockbot_core::{AgentIdentity, SystemClock};
/// use rockbot_memory::Memory;
///
/// // A host calls this for `.add(Memory::default().without_rules())`.
/// let mut memory = Memory::default().without_rules();
/// let parts = Parts::new(AgentIdentity::new("clerk"), std::sync::Arc::new(SystemClock), None);
/// let mut declarations = Declarations::new(parts);
/// memory.declare(&mut declarations)?;
/// let names: Vec<_> = declarations.merge().tools.into_iter().map(|tool| tool.registration.name).collect();
/// assert!(names.contains(&"save_memory".into()));
/// assert!(!names.contains(&"change_rules".into()));
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

/// The background work of a model.
#[derive(Debug)]
struct BackgroundWork {
    jobs: Jobs,
    expander: Option<Expander>,
    summarizer: Option<Summarizer>,
    seeding: Option<SkillSeeding>,
    embedder: Option<Embedder>,
}

impl Memory {
    /// Creates a memory without any part, for those that are turned on by name.
    ///
    /// ```
    /// use rockbot_memory::Memory;
    ///
    /// let rules_and_skills = Memory::none().with_rules().with_skills(); // for `AgentHostBuilder::add`
    /// ```
    pub fn none() -> Self {
        Self {
            feedback: StoreChoice::Off,
            ..Self::default()
        }
        .without_long_term()
        .without_working()
        .without_skills()
        .without_rules()
    }

    /// Enables long-term memory. [`Memory::default`] has it.
    pub fn with_long_term(mut self) -> Self {
        self.long_term.enable();
        self
    }

    /// Enables working memory. [`Memory::default`] has it.
    pub fn with_working(mut self) -> Self {
        self.working.enable();
        self
    }

    /// Enables skills, with the log of their uses and the starter skills. [`Memory::default`] has them.
    pub fn with_skills(mut self) -> Self {
        self.skills.enable();
        self.skill_usage.enable();
        self
    }

    /// Enables rules. [`Memory::default`] has them.
    pub fn with_rules(mut self) -> Self {
        self.rules.enable();
        self
    }

    /// Enables the store of feedback. [`Memory::default`] has it.
    pub fn with_feedback(mut self) -> Self {
        self.feedback.enable();
        self
    }

    /// Sets the long-term memory.
    pub fn long_term(mut self, memory: impl LongTermMemory) -> Self {
        self.long_term = StoreChoice::Given(Arc::new(memory));
        self
    }

    /// Disables long-term memory.
    pub fn without_long_term(mut self) -> Self {
        self.long_term = StoreChoice::Off;
        self
    }

    /// Sets the folder of long-term memory. Default: the setting `Memory.BasePath`.
    pub fn long_term_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.memory = Some(folder.into());
        self
    }

    /// Sets the Markdown file with the rules on what to remember and how; it is read each time.
    /// Default: the setting `AgentProfile.MemoryRulesPath`; without a file, a built-in text.
    pub fn memory_rules(mut self, file: impl Into<PathBuf>) -> Self {
        self.folders.memory_rules = Some(file.into());
        self
    }

    /// Sets the working memory.
    pub fn working(mut self, memory: impl WorkingMemory) -> Self {
        self.working = StoreChoice::Given(Arc::new(memory));
        self
    }

    /// Disables working memory.
    pub fn without_working(mut self) -> Self {
        self.working = StoreChoice::Off;
        self
    }

    /// Sets the stores of skills and of their uses.
    pub fn skills(mut self, skills: impl SkillStore, usage: impl SkillUsageStore) -> Self {
        self.skills = StoreChoice::Given(Arc::new(skills));
        self.skill_usage = StoreChoice::Given(Arc::new(usage));
        self
    }

    /// Disables skills.
    pub fn without_skills(mut self) -> Self {
        self.skills = StoreChoice::Off;
        self.skill_usage = StoreChoice::Off;
        self
    }

    /// Sets the folders of skills and of their usage log. Default: the settings `Skills.BasePath` and
    /// `Skills.UsageBasePath`.
    pub fn skills_folders(mut self, skills: impl Into<PathBuf>, usage: impl Into<PathBuf>) -> Self {
        self.folders.skills = Some(skills.into());
        self.folders.skill_usage = Some(usage.into());
        self
    }

    /// Adds the skills of a folder in the open format; call it once for each folder.
    ///
    /// They are imported at start, for the principal `local`, as [`SkillFolder::import`] does, and
    /// again when their text has changed; a deleted one stays deleted until then. The model reads the
    /// files beside their `SKILL.md` with `get_skill`: texts of at most 1 MiB. A folder that cannot
    /// be read is logged, and the host starts without it.
    pub fn skill_folder(mut self, folder: SkillFolder) -> Self {
        self.skill_folders.push(folder);
        self
    }

    /// Disables starter skills: guides to tools do not become skills.
    pub fn without_starter_skills(mut self) -> Self {
        self.without_starters = true;
        self
    }

    /// Sets the store of rules.
    pub fn rules(mut self, rules: impl RulesStore) -> Self {
        self.rules = StoreChoice::Given(Arc::new(rules));
        self
    }

    /// Disables rules.
    pub fn without_rules(mut self) -> Self {
        self.rules = StoreChoice::Off;
        self
    }

    /// Sets the store of feedback.
    pub fn feedback(mut self, feedback: impl FeedbackStore) -> Self {
        self.feedback = StoreChoice::Given(Arc::new(feedback));
        self
    }

    /// Sets the folder of feedback. Default: the setting `Feedback.BasePath`.
    pub fn feedback_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.feedback = Some(folder.into());
        self
    }

    /// Sets the retention periods. Default: the settings `Memory.ArchiveRetention`,
    /// `Feedback.Retention` and `Skills.UsageRetention`.
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = Some(retention);
        self
    }

    /// Adds a log of all conversations, for later analysis, in the folder `conversation-log` below
    /// the host's data folder, if it has one. Default: none, unless the host was given one.
    ///
    /// ```
    /// use rockbot_core::store::ConversationLog;
    /// # use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
    /// # use rockbot_core::{AgentIdentity, SystemClock};
    /// use rockbot_memory::Memory;
    ///
    /// let mut memory = Memory::default().with_conversation_log(); // for `AgentHostBuilder::add`
    /// # let parts = Parts::new(AgentIdentity::new("clerk"), std::sync::Arc::new(SystemClock), None);
    /// # let mut declarations = Declarations::new(parts);
    /// # memory.declare(&mut declarations)?;
    /// # assert!(declarations.parts().get::<dyn ConversationLog>().is_some());
    /// # Ok::<(), rockbot_core::BoxError>(())
    /// ```
    pub fn with_conversation_log(mut self) -> Self {
        self.conversation_log.enable();
        self
    }
}
