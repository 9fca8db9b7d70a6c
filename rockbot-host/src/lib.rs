//! The runtime of the rockbot agent framework: it receives messages, runs turns, asks models,
//! calls tools, and remembers.
//!
//! [`AgentHost`] is the entry point: [`AgentHostBuilder`] assembles one from a chat client,
//! tools, stores and a bus, and [`Agent`] asks it.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! use rockbot_core::testing::ScriptedModel;
//! use rockbot_core::tool::tool;
//! use rockbot_host::AgentHost;
//!
//! /// Returns the temperature of a city in degrees Celsius.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Temperature {
//!     city: String,
//! }
//!
//! let model = ScriptedModel::new()
//!     .calls("temperature", serde_json::json!({ "city": "Oslo" }))
//!     .says("It is 4 °C in Oslo.");
//! let host = AgentHost::builder("weather")
//!     .chat(model)
//!     .tool(tool("temperature", |request: Temperature| async move { format!("{}: 4", request.city) }).pure())
//!     .build()?;
//!
//! let outcome = host.agent().ask("session", "How cold is it in Oslo?").await?;
//! assert_eq!(outcome.text, "It is 4 °C in Oslo.");
//! # Ok(())
//! # }
//! ```
//!
//! # From a message to its reply
//!
//! 1. A delivery of the bus passes the pipeline (`pipeline`) to the handler of its type
//!    (`handlers`); a program calls [`Agent::ask`] instead.
//! 2. The engine (`engine`) accepts the turn in the journal and admits it to its session
//!    (`live`). In a session one turn runs at a time.
//! 3. The [`turn`] machine decides the next step, and the driver (`driver`) performs it: it asks
//!    the model, or calls tools through the [`tool`] dispatcher. Every event and decision is in
//!    the journal before the act.
//! 4. The results return to the machine as events, until it decides to finish; the [`answer`]
//!    filter passes over the text.
//! 5. The conversation is stored, the reply is published, and the end is
//!    written to the journal.
//!
//! # Modules
//!
//! | concern | modules |
//! |---|---|
//! | the surface | `host` ([`AgentHost`], its builder and its lifecycle), `agent` ([`Agent`]), [`settings`] |
//! | turns | [`turn`] (the pure machine and its policies), `driver` (performs steps), `engine` (acceptance, resume, approvals), `live` (running turns and sessions) |
//! | models | `chat` (guards model calls), [`text_calling`] (tool calls in plain text), [`behavior`] (exceptions for particular models), [`routing`] (tiers), [`profile`] (the system prompt) |
//! | tools | [`tool`] (guards tool calls), [`workers`] (tools of other programs that come and go), `effects` (calls of others that must not run twice), [`large_result`] (offloads long results) |
//! | messages | [`bus`] (the in-process bus), `pipeline` (deduplication, routes, reply topics), `handlers` (of users, and of tool calls), [`answer`] (sanitizes replies) |
//! | persistence | `shared_journal` (the turns of one agent among others), `conversation_outbox` (entries that the conversations refuse), `media_library` (images and files); the stores on disk are in `rockbot-store` |
//! | cross-cutting | `layer`, `layer_fn` (tower layers of a user, also from async functions), [`telemetry`] (spans and metrics), `isolate` (panics) |
//!
//! The contracts that these modules implement or call are traits of `rockbot-core`.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod agent;
mod agents;
mod announcements;
pub mod answer;
pub mod behavior;
pub mod bus;
mod chat;
mod conversation_outbox;
mod driver;
mod effects;
mod engine;
mod handlers;
mod host;
mod isolate;
pub mod large_result;
mod layer;
mod layer_fn;
mod live;
mod media_library;
mod pipeline;
pub mod profile;
pub mod routing;
pub mod settings;
mod shared_journal;
pub mod telemetry;
pub mod text_calling;
pub mod tool;
pub mod turn;
mod waiting_runs;
pub mod workers;

pub use agent::{
    Agent, AgentRequest, AgentTool, AnnouncementStream, AnswerKind, Conversation, ConversationError, OutputProgress,
    OutputStream, Reply, TurnHandle, TurnStream, Typed, WithOutcome,
};
pub use driver::ContextBudget;
pub use engine::{Briefing, HistoryOptions, Resumed, TurnService};
/// The trait of [`TurnStream`] and [`OutputStream`], re-exported.
#[doc(no_inline)]
pub use futures_util::Stream;
pub use handlers::UserOptions;
pub use host::{
    AgentHost, AgentHostBuilder, BuildError, HostState, MessageOptions, NotReady, StartError, Stores, TurnPolicies,
};
pub use layer::Stack;
pub use layer_fn::{FnLayer, FnService, Next, chat_fn, message_fn, tool_fn, turn_fn};
pub use live::BacklogLimits;
pub use rockbot_core::turn::{Busy, TurnCall, TurnError};
