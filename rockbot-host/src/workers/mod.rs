//! Tool workers and the agents that use their tools: tools that come and go while both run.
//!
//! A worker ([`announce_tools`](crate::AgentHostBuilder::announce_tools)) announces its tools on
//! the bus with a lease, renews the lease by heartbeats, and withdraws the tools before it stops
//! (`announcer`). An agent with the subsystem [`RemoteTools`] takes the announced tools into its
//! registry and drops them when the last worker of a name has left or its lease has run out
//! (`directory`). Workers of one name share one queue, so they compete for calls. The messages
//! are in `wire`.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use rockbot_core::messaging::Bus;
//! use rockbot_core::testing::ScriptedModel;
//! use rockbot_core::tool::tool;
//! use rockbot_host::AgentHost;
//! use rockbot_host::bus::InProcessBus;
//! use rockbot_host::workers::RemoteTools;
//!
//! /// Adds two numbers.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Add { a: i64, b: i64 }
//!
//! // With a broker, each of the two hosts would be a process of its own.
//! let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
//! let worker = AgentHost::builder("calculator")
//!     .shared_bus(bus.clone())
//!     .tool(tool("add", |Add { a, b }: Add| async move { (a + b).to_string() }).pure())
//!     .announce_tools()
//!     .build()?;
//! worker.start().await?;
//!
//! let model = ScriptedModel::new().calls("add", serde_json::json!({ "a": 6, "b": 1 })).says("Seven.");
//! let agent = AgentHost::builder("agent")
//!     .chat(model)
//!     .shared_bus(bus)
//!     .add(RemoteTools::new().expect("calculator"))
//!     .build()?;
//! agent.start().await?;
//! // Not ready before the worker that it expects has announced its tools.
//! while agent.readiness().is_err() {
//!     tokio::time::sleep(Duration::from_millis(1)).await;
//! }
//! assert_eq!(agent.agent().ask("session", "6 + 1?").await?.text, "Seven.");
//! # Ok(())
//! # }
//! ```
//!
//! A host with `announce_tools` takes calls under `tool.invoke.NAME` and announces its tools
//! under `tool.announce`: when it starts, when they change, when an agent asks under
//! `tool.discover`, and by a small heartbeat three times in each lease (`ToolLease`, 15 s).
//! Agents with `RemoteTools` replace the tools of a name in one step (`replace_source`). They
//! drop them when its last process has withdrawn them or its lease, counted by their own
//! monotonic clock, has run out. A worker that stops withdraws its tools, then ends its calls.
//!
//! Descriptions are text of other programs: bounded, defused, and labelled `tools:worker:NAME`;
//! hints count where they make an agent more careful. Own tools win over a worker's.
//!
//! A cancellation goes to all workers under `tool.cancel`, since the caller does not know which
//! worker has the call; a cancellation that comes before its call keeps it from beginning. A
//! worker ends a call before the caller's time is over: by a tenth of that time, at most by a
//! second. So the caller reads the worker's own error. A call that the worker's shutdown cuts off
//! is answered with an error, too.
//!
//! Workers are found by announcements, not by a directory service: each agent keeps its own list,
//! so nothing has to be up besides the bus.

mod announcer;
mod directory;
mod options;
mod questions;
mod remote_tools;
mod remote_worker;
mod taken_tools;
#[cfg(test)]
mod tests;
mod wire;

use std::time::Duration;

pub(crate) use announcer::{Announcer, Announcing};
pub use remote_tools::RemoteTools;
pub(crate) use wire::{CANCEL_TOPIC, ToolCallCancelled};

/// Time for which an announcement of tools is valid unless the host sets another one.
pub(crate) const TOOL_LEASE: Duration = Duration::from_secs(15);
