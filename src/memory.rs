//! Memory: the knowledge that an agent keeps between conversations, and how it learns.
//!
//! [`Memory`] is the subsystem that gives an agent long-term memory, working memory, skills and
//! rules, with the tools that let a model use them; [`FileMemory`] and `SqliteMemory` (feature
//! `sqlite`) are the stores behind it. [`SemanticMemory`] finds facts by meaning with an
//! embedding model. [`FeedbackSignals`] and [`SessionEvaluation`] record how well the agent did.
//! Recall ([`ContextSource`]) chooses the memories that a model is shown before a turn.
//! [`Dreaming`] tends all of it while users are silent.
//!
//! ```
//! use rockbot::agent::AgentHostBuilder;
//! use rockbot::memory::{FeedbackSignals, Memory};
//!
//! fn remembering(builder: AgentHostBuilder) -> AgentHostBuilder {
//!     builder.data_dir("data").add(Memory::default()).add(FeedbackSignals::new())
//! }
//! ```
//!
#![doc = include_str!("../docs/memory.md")]

#[doc(inline)]
pub use rockbot_core::recall::{ContextItem, ContextQuery, ContextSource};
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
#[doc(inline)]
pub use rockbot_memory::SqliteMemory;
#[doc(inline)]
pub use rockbot_memory::{
    ConversationLogOptions, DreamOptions, Dreaming, Dreams, EvaluationOptions, FeedbackSignals, FileMemory, Memory,
    SemanticMemory, SessionEvaluation, SkillFolder, copy, dreams, skill_folder,
};
