//! Services: one search over everything that a model can hand work to.
//!
//! [`ServiceSearch`] gives the model the tool `search_known_services` over agents, MCP servers,
//! tools, guides and skills. Agents come from an [`AgentDirectory`], such as the file
//! `well-known-agents.json` in the data folder; a subsystem of yours adds services by a
//! [`ServiceSource`].
//!
//! ```
//! use rockbot::agent::AgentHostBuilder;
//! use rockbot::service::ServiceSearch;
//!
//! fn with_a_search(builder: AgentHostBuilder) -> AgentHostBuilder {
//!     builder.add(ServiceSearch::new()) // in a configuration: `[ServiceSearch]` with `Enabled = true`
//! }
//! ```

#[doc(inline)]
pub use rockbot_core::service::{
    AgentCard, AgentDirectory, AgentSkill, KnownAgents, KnownService, ServiceKind, ServiceSource, ServiceSources,
};
#[doc(inline)]
pub use rockbot_remote::ServiceSearch;
