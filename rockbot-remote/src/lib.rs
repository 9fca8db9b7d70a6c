//! Tools and services of other processes, for agents of the rockbot framework.
//!
//! * [`ServiceSearch`]: one search over the agents, MCP servers, tools, guides and skills that a
//!   model can hand work to
#![cfg_attr(
    feature = "tool-services",
    doc = "* [`tool_services`]: tools that separate services offer over the bus, added by descriptors"
)]
//!
//! Each is a [`Subsystem`](rockbot_core::subsystem::Subsystem) of a host and needs only the
//! contracts of `rockbot-core`.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod service_search;
#[cfg(feature = "tool-services")]
#[cfg_attr(docsrs, doc(cfg(feature = "tool-services")))]
pub mod tool_services;

pub use service_search::{ServiceSearch, ServiceSearchSettings};
