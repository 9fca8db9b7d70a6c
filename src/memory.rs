//! Memory: what an agent remembers between conversations, and how it learns.
//!
//! [`Memory`] is the subsystem that gives an agent long-term memory, working memory, skills and rules, with the tools by
//! which a model uses them; [`FileMemory`] and `SqliteMemory` (feature `sqlite`) are the stores behind it.
//! [`SemanticMemory`] finds facts by meaning with an embedding model. [`FeedbackSignals`] and [`SessionEvaluation`]
//! record how well the agent did. [`recall`] chooses what a model is shown before a turn. [`Dreaming`] tends all of it
//! while users are silent.
//!
//! ```
//! use rockbot::agent::AgentHostBuilder;
//! use rockbot::memory::{FeedbackSignals, Memory};
//!
//! fn remembering(builder: AgentHostBuilder) -> AgentHostBuilder {
//!     builder.data_dir("data").add(Memory::default()).add(FeedbackSignals::new())
//! }
//! ```

#[doc(inline)]
pub use rockbot_core::recall::*;
#[doc(inline)]
pub use rockbot_memory::*;
