//! Services: agents, servers, tools, guides and skills for a model, and the sources that list
//! them.
//!
//! A [`KnownService`] is an agent, an MCP server, a tool, a guide or a skill, described for a
//! search. A [`ServiceSource`] lists the services that it knows; a subsystem adds its source to
//! the part [`ServiceSources`] of its host. The agents among the services come from an
//! [`AgentDirectory`].

mod agents;
mod known;
mod sources;

pub use agents::{AgentCard, AgentDirectory, AgentFileError, AgentSkill, KnownAgents};
pub use known::{KnownService, ServiceKind};
pub use sources::{ServiceSource, ServiceSources};
