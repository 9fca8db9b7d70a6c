//! Agents that hand tasks to each other: over the bus, in the messages of the original, and to
//! agents with a URL by the A2A protocol over HTTP.
//!
//! [`A2aCaller`] is the side that asks: the model's tools, the directory of agents (`directory`,
//! `cards`, `known_file`), the tasks until their ends are told. [`A2aReceiver`] is the side that
//! works. The messages are in `wire`, their texts in `texts`, their topics in `topics`;
//! `task_file` keeps the tasks of either side.

mod caller;
mod cards;
mod directory;
mod known_file;
mod receiver;
mod task_file;
mod texts;
mod topics;
mod wire;

pub use crate::a2a_callers::CallerTrust;
pub use caller::{A2aCaller, RemoteAgent};
pub use receiver::A2aReceiver;

/// Name of the group of the tools that call agents. A search that finds an agent activates it.
const GROUP: &str = "a2a";
