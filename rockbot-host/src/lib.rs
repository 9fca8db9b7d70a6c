//! The runtime of the rockbot agent framework: the turn engine, its journal, sessions, and the agent host.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod agent;
pub mod answer;
pub mod behavior;
pub mod bus;
mod chat;
pub mod conversation;
mod driver;
mod engine;
mod handlers;
mod host;
mod isolate;
pub mod journal;
pub mod large_result;
mod layer;
mod live;
mod pipeline;
pub mod profile;
pub mod routing;
pub mod settings;
pub mod telemetry;
pub mod text_calling;
pub mod tool;
pub mod turn;

pub use agent::{Agent, TurnStream};
pub use driver::ContextBudget;
pub use engine::{Briefing, Resumed, TurnCall, TurnError, TurnService};
pub use handlers::UserOptions;
pub use host::{AgentHost, AgentHostBuilder, BuildError, HostState, NotReady, StartError};
pub use layer::Stack;
