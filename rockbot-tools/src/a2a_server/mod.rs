//! A host's agent for other agents, by the protocol A2A over HTTP: [`A2aServer`].
//!
//! `subsystem` is the builder and the running side, `settings` its section of the configuration,
//! `endpoint` the part that shows it to a program. A request goes through `door` (bounds),
//! `admission` (names, keys) and a binding, `rpc` or `rest`, to the operations in `calls`,
//! `accept` and `list`, which read and write turns of the host; `operations` has the code that
//! they share, and `tasks` are the records. `stream` tells a task's changes, `watch` notes them
//! and asks the operator, `content` converts messages and answers, `input` is the agent's
//! question to its caller, `push` tells changes to addresses of clients. An answer is a `reply` in
//! the `form` of its client. The protocol's objects are in `a2a_wire`, which the client of `a2a`
//! shares.

mod accept;
mod admission;
mod caller;
mod calls;
mod card;
mod content;
mod door;
mod endpoint;
mod form;
mod input;
mod list;
mod operations;
mod push;
mod reply;
mod rest;
mod rpc;
pub mod settings;
mod stream;
mod subsystem;
mod tasks;
#[cfg(test)]
mod tests;
mod version;
mod watch;

pub use crate::a2a_callers::CallerTrust;
pub use caller::A2aCaller;
pub use endpoint::{A2aEndpoint, A2aRouter};
pub use subsystem::A2aServer;
