//! Stores: one trait for each kind of thing that is remembered, and their implementations.
//!
//! [`ConversationMemory`], [`LongTermMemory`], [`WorkingMemory`], [`SkillStore`], [`RulesStore`], [`FeedbackStore`] and
//! [`ConversationLog`] are the traits; every operation names a principal, and principals never see each other's entries.
//! Each has an in-memory version here; versions in files and in SQLite are in [`memory`](crate::memory). The journal of
//! turns ([`FileTurnJournal`]) and conversations in files ([`FileConversationMemory`]) belong to every host with a data
//! folder. With the feature `postgres`, `Postgres` keeps turns and memory where several processes share them. Authors of
//! stores find the rest in [`implement::store`](crate::implement::store), and run the conformance suites of
//! [`testing`](https://docs.rs/rockbot-core).
//!
//! ```
//! use rockbot::Principal;
//! use rockbot::store::{InMemoryRulesStore, Rule, RulesStore};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), rockbot::BoxError> {
//! let rules = InMemoryRulesStore::new();
//! let rule = Rule::new("Answer in French.").expect("the text is not blank");
//! rules.add(&Principal::default(), rule).await?;
//! assert_eq!(rules.list(&Principal::default()).await?.len(), 1);
//! # Ok(())
//! # }
//! ```
#![cfg_attr(feature = "postgres", doc = "")]
#![cfg_attr(feature = "postgres", doc = include_str!("../docs/many_machines.md"))]

#[doc(inline)]
pub use rockbot_core::store::{
    ConversationLog, ConversationMemory, ConversationTurn, FeedbackStore, InMemoryConversationMemory,
    InMemoryLongTermMemory, InMemoryRulesStore, InMemorySkillStore, InMemoryWorkingMemory, LongTermMemory, MediaStore,
    MemoryEntry, Rule, RulesStore, Skill, SkillStore, SkillUsageStore, StoreError, StoreErrorKind, WorkingMemory,
    remembered,
};
#[doc(inline)]
pub use rockbot_store::file::{
    ConversationOptions, Durability, FileConversationMemory, FileTurnJournal, JournalOptions,
};
#[cfg(feature = "postgres")]
#[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
#[doc(inline)]
pub use rockbot_store::postgres::{self, Postgres, PostgresOptions, PostgresSettings};
