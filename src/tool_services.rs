//! Tool services: tools that other processes run, added to a running agent by deploying a service
//! and a descriptor.
//!
//! [`ToolServices`] is the subsystem of the agent: it watches a folder of descriptors, and with
//! [`announced`](ToolServices::announced) takes in the tools that services announce themselves.
//! [`ToolServiceServer`] runs a [`ToolService`] as a process. Both speak over any bus; on
//! RabbitMQ with fanout exchanges they share a broker with TrustGraph.
//!
//! ```
//! use std::sync::Arc;
//!
//! use rockbot::BoxError;
//! use rockbot::message::InProcessBus;
//! use rockbot::prelude::*;
//! use rockbot::tool_services::{DescriptorFolder, ToolServices};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let descriptors = DescriptorFolder::new(folder);
//! descriptors.put("tool-service/joke-service", r#"{ "id": "joke-service", "topic": "joke" }"#)?;
//! descriptors.put("tool/tell-joke", r#"{
//!     "type": "tool-service", "name": "tell-joke", "description": "Tell a joke.", "service": "joke-service"
//! }"#)?;
//! let host = AgentHost::in_memory()
//!     .chat(ChatTiers::from_env_or_offline()?)
//!     .bus(InProcessBus::new())
//!     .add(ToolServices::new().folder(folder))
//!     .build()?;
//! host.start().await?;
//! assert!(host.tools().snapshot().find("tell-joke").is_some());
//! # Ok(())
//! # }
//! ```
//!
#![doc = include_str!("../docs/tool_services.md")]

#[doc(inline)]
pub use rockbot_remote::tool_services::{
    DescriptorFolder, DescriptorProblem, QueueId, QueueIdError, ReplyParts, RunningToolService, TooManyRequests,
    ToolService, ToolServiceServer, ToolServices,
};
