//! What a host is given so that its agent remembers: [`Memory`].

mod choice;
mod declare;

use std::path::PathBuf;
use std::sync::Arc;

use rockbot_core::embedding::EmbeddingClient;
use rockbot_core::store::{FeedbackStore, LongTermMemory, RulesStore, SkillStore, SkillUsageStore, WorkingMemory};

use crate::background::{Expander, Jobs, Summarizer};
use crate::{Embedder, SemanticMemoryOptions};
use choice::Choice;

/// What an agent remembers, and the tools by which its model uses it: long-term memory, working memory, skills and rules;
/// and where feedback is kept.
///
/// In a host with a data folder everything is in files, in the places that [`FileMemory`](crate::FileMemory) has for
/// them; in one without a folder everything is in memory. A store that the host was given takes the place of ours, and
/// so does one that is given here. A log of all that is said is not among it: give the host one.
///
/// With each part come its tools, a guide to them, and what of it is [shown](crate::recall) to the model before a turn:
///
/// | part | tools |
/// |---|---|
/// | long-term memory | `save_memory`, `search_memory`, `edit_memory`, `delete_memory`, `restore_memory`, `list_memory_categories` |
/// | working memory | `save_to_working_memory`, `list_working_memory`, `search_working_memory`, `edit_working_memory`, `delete_from_working_memory`, beside the host's `get_from_working_memory` and `search_tool_output` |
/// | skills | `list_skills`, `get_skill`, `save_skill`, `edit_skill`, `delete_skill` |
/// | rules | `add_rule`, `edit_rule`, `remove_rule`, `list_rules` |
///
/// **In the background**, once the host has started, a model files what `save_memory` saved and says what new skills are
/// for: one call at a time, without tools, after everybody who waits for an answer. The text is stored before that, so when
/// the model fails, more than 64 texts wait, or the process ends, it stays as it was saved. A text that was filed stays
/// as an archived entry.
///
/// **Origin**: what a model writes down in a turn in which it has read something from a tool or another stranger carries that
/// [provenance](rockbot_core::chat::Provenance) and is not trusted; rules cannot be changed in such a turn.
///
/// ```
/// use rockbot_core::subsystem::{Needs, Parts, Subsystem as _};
/// use rockbot_core::{AgentIdentity, SystemClock};
/// use rockbot_memory::Memory;
///
/// // A host does this when it is told `.add(Memory::default().without_rules())`.
/// let mut memory = Memory::default().without_rules();
/// let parts = Parts::new(AgentIdentity::new("clerk"), std::sync::Arc::new(SystemClock), None);
/// let mut needs = Needs::new(parts);
/// memory.declare(&mut needs)?;
/// let names: Vec<_> = needs.into_declared().tools.into_iter().map(|tool| tool.registration.name).collect();
/// assert!(names.contains(&"save_memory".into()));
/// assert!(!names.contains(&"add_rule".into()));
/// # Ok::<(), rockbot_core::BoxError>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct Memory {
    long_term: Choice<dyn LongTermMemory>,
    working: Choice<dyn WorkingMemory>,
    skills: Choice<dyn SkillStore>,
    skill_usage: Choice<dyn SkillUsageStore>,
    rules: Choice<dyn RulesStore>,
    feedback: Choice<dyn FeedbackStore>,
    embeddings: Option<Embeddings>,
    folders: Folders,
    work: Option<Work>,
}

/// Who makes vectors of long-term memory, and how it is found by them.
#[derive(Debug)]
struct Embeddings {
    client: Arc<dyn EmbeddingClient>,
    options: SemanticMemoryOptions,
}

/// Where files are, when not below the host's data folder.
#[derive(Debug, Default)]
struct Folders {
    memory: Option<PathBuf>,
    skills: Option<PathBuf>,
    skill_usage: Option<PathBuf>,
    feedback: Option<PathBuf>,
    memory_rules: Option<PathBuf>,
}

/// What is done in the background.
#[derive(Debug)]
struct Work {
    jobs: Jobs,
    expander: Option<Expander>,
    summarizer: Option<Summarizer>,
    embedder: Option<Embedder>,
}

impl Memory {
    /// Long-term memory is this one.
    pub fn long_term(mut self, memory: impl LongTermMemory) -> Self {
        self.long_term = Choice::Given(Arc::new(memory));
        self
    }

    /// Without long-term memory.
    pub fn without_long_term(mut self) -> Self {
        self.long_term = Choice::Off;
        self
    }

    /// Long-term memory is in this folder. Default: `memory` below the host's data folder, if it has one.
    pub fn long_term_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.memory = Some(folder.into());
        self
    }

    /// Long-term memory is found by what it means, too: see [`semantic`](crate::semantic). **Everything in it, and
    /// everything that is searched for, goes to `client`**, which for most is a server. Without a call of this nothing
    /// does.
    ///
    /// Vectors are kept in `embeddings` below the host's data folder, if it has one. With a store that the host was given,
    /// others than the tools and the recall of this subsystem find by words.
    pub fn embeddings(self, client: impl EmbeddingClient) -> Self {
        self.embeddings_with(client, SemanticMemoryOptions::default())
    }

    /// [`Memory::embeddings`], as `options` say.
    pub fn embeddings_with(mut self, client: impl EmbeddingClient, options: SemanticMemoryOptions) -> Self {
        let client = Arc::new(client);
        self.embeddings = Some(Embeddings { client, options });
        self
    }

    /// What is worth remembering, and how, says this Markdown file, which is read again each time. Default:
    /// `memory-rules.md` in the host's data folder; without a file a text of our own.
    pub fn memory_rules(mut self, file: impl Into<PathBuf>) -> Self {
        self.folders.memory_rules = Some(file.into());
        self
    }

    /// Working memory is this one.
    pub fn working(mut self, memory: impl WorkingMemory) -> Self {
        self.working = Choice::Given(Arc::new(memory));
        self
    }

    /// Without working memory.
    pub fn without_working(mut self) -> Self {
        self.working = Choice::Off;
        self
    }

    /// Skills and their uses are kept there.
    pub fn skills(mut self, skills: impl SkillStore, usage: impl SkillUsageStore) -> Self {
        self.skills = Choice::Given(Arc::new(skills));
        self.skill_usage = Choice::Given(Arc::new(usage));
        self
    }

    /// Without skills.
    pub fn without_skills(mut self) -> Self {
        self.skills = Choice::Off;
        self.skill_usage = Choice::Off;
        self
    }

    /// Skills are in the folder `skills`, their uses in `usage`. Default: `skills` and `skill-usage` below the host's data
    /// folder, if it has one.
    pub fn skills_folders(mut self, skills: impl Into<PathBuf>, usage: impl Into<PathBuf>) -> Self {
        self.folders.skills = Some(skills.into());
        self.folders.skill_usage = Some(usage.into());
        self
    }

    /// Rules are kept there.
    pub fn rules(mut self, rules: impl RulesStore) -> Self {
        self.rules = Choice::Given(Arc::new(rules));
        self
    }

    /// Without rules.
    pub fn without_rules(mut self) -> Self {
        self.rules = Choice::Off;
        self
    }

    /// Feedback is kept there.
    pub fn feedback(mut self, feedback: impl FeedbackStore) -> Self {
        self.feedback = Choice::Given(Arc::new(feedback));
        self
    }

    /// Feedback is in this folder. Default: `feedback` below the host's data folder, if it has one.
    pub fn feedback_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.feedback = Some(folder.into());
        self
    }
}
