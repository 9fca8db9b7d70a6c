//! Tool services: tools that other processes run, added to a running agent by deploying a service
//! and a descriptor.
//!
//! A *tool service* takes requests from one queue and replies on another. Two descriptors, JSON
//! objects, make it a tool: a descriptor of the service, with its queues and the config
//! parameters that it takes, and a descriptor for each tool, with the service, the config values,
//! and the texts that the model reads: name, description, arguments. Several tools can share a
//! service.
//!
//! * [`ToolServices`] is the agent's side, a subsystem: descriptors from files, a watched
//!   [`DescriptorFolder`], or announced by the services themselves.
//! * [`ToolService`] and [`ToolServiceServer`] are the service's side.
//!
//! Both speak over any [`Bus`](rockbot_core::messaging::Bus). Ids of queues and the messages are
//! TrustGraph's, so either side can be TrustGraph's on a broker that both share.
//!
//! In the code: `descriptor` finds and reads descriptors, `catalog` joins the descriptors of all
//! origins; `executor` and `client` call a service in the messages of `wire`; `server` is the
//! other end of these; `announcement` is the message that announces services, and `subsystem`
//! keeps a host's tools up to date.

mod announcement;
mod catalog;
mod client;
mod descriptor;
mod executor;
mod folder;
mod queue_id;
mod schema;
mod server;
mod subsystem;
mod tool_service;
mod wire;

pub use descriptor::DescriptorProblem;
pub use folder::DescriptorFolder;
pub use queue_id::{QueueId, QueueIdError};
pub use server::{RunningToolService, ToolServiceServer};
pub use subsystem::{ToolServiceSettings, ToolServices};
pub use tool_service::{ReplyParts, TooManyRequests, ToolService};
