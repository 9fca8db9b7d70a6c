//! The agent and its host: building, asking, starting, shutting down.
//!
//! [`AgentHost::builder`] (or [`AgentHost::in_memory`], which keeps nothing on disk) composes
//! models, tools, stores, layers and subsystems into an [`AgentHost`]; [`AgentHost::agent`]
//! returns the [`Agent`] that a program asks directly. A host on a bus is started with
//! [`AgentHost::start`] or [`AgentHost::run_until`]: it resumes interrupted turns, then
//! subscribes. A [`Subsystem`] is a part with a life of its own, such as
//! [`Memory`](crate::memory::Memory): it declares the parts that it provides and requires while
//! the host is built, and starts and stops with it.
//!
//! ```
//! use rockbot::agent::AgentHost;
//! # #[cfg(feature = "testing")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), rockbot::BoxError> {
//! use rockbot::testing::ScriptedModel;
//!
//! let host = AgentHost::in_memory().chat(ScriptedModel::new().says("Hello.")).build()?;
//! let answer = host.agent().ask("a session", "Hi!").await?;
//! assert_eq!(answer.text, "Hello.");
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "testing"))]
//! # fn main() {}
//! ```
//!
#![doc = include_str!("../docs/agent.md")]

#[cfg(all(feature = "llm", feature = "memory"))]
#[cfg_attr(docsrs, doc(cfg(all(feature = "llm", feature = "memory"))))]
pub use crate::configured::FromConfig;

#[doc(inline)]
pub use rockbot_core::subsystem::{
    AgentSpec, Declarations, Idle, PartCost, Parts, Running, RunningTask, Stage, Subsystem,
};
#[doc(inline)]
pub use rockbot_host::answer::{AnswerFilter, FilteredAnswer, SafeLinks};
#[doc(inline)]
pub use rockbot_host::{
    Agent, AgentHost, AgentHostBuilder, AgentRequest, AgentTool, BuildError, Conversation, ConversationError,
    HostState, NotReady, OutputProgress, OutputStream, Reply, StartError, Stores, TurnHandle, TurnStream, Typed,
    UserOptions, WithOutcome, profile, telemetry,
};
