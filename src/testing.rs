//! Testing: scripted models, mock tools, a manual clock, and the conformance suites of all traits.
//!
//! [`ScriptedModel`] gives the answers of a test and records its requests; [`mock_tool`] does the
//! same for a tool; [`ManualClock`] stands still until a test moves it. [`conformance`] has one
//! suite for each trait: an implementation that passes it can stand in for any other.
//!
//! ```
//! use rockbot::agent::AgentHost;
//! use rockbot::testing::ScriptedModel;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), rockbot::BoxError> {
//! let model = ScriptedModel::new().says("Four.");
//! let host = AgentHost::in_memory().chat(model.clone()).build()?;
//! assert_eq!(host.agent().ask("s", "What is 2 + 2?").await?.text, "Four.");
//! model.assert_complete();
//! # Ok(())
//! # }
//! ```
//!
#![doc = include_str!("../docs/testing.md")]

#[doc(inline)]
pub use rockbot_core::files::FailingSyncs;
#[doc(inline)]
pub use rockbot_core::testing::{
    HashedEmbeddings, ManualClock, MockToolHandle, Mutations, ScriptedModel, SequentialIds, conformance, mock_tool,
    outside_part,
};
