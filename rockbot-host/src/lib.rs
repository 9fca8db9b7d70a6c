//! The runtime of the rockbot agent framework: the turn engine, its journal, sessions, and the agent host.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod agent;
pub mod bus;
mod chat;
mod driver;
mod engine;
mod host;
pub mod journal;
mod layer;
pub mod profile;
mod session;
pub mod tool;
pub mod turn;

pub use agent::{Agent, TurnStream};
pub use engine::{Resumed, TurnCall, TurnError, TurnService};
pub use host::{AgentHost, AgentHostBuilder, BuildError};
pub use layer::Stack;
