//! An agent of the `rockbot` framework over HTTP, for people and their programs: [`WebServer`].
//!
//! `subsystem` is the builder and the running side, `settings` its section of the configuration,
//! `endpoint` the part that shows it to a program, as routers of axum. A request goes through `door`
//! (names, bounds), `sign_in` (users) and `limits` (each user's) to an interface: `api`, our own,
//! `openai` or `ag_ui`. Turns are read as server-sent events by `sse`, in the form of each interface,
//! and a turn that has one reader alone is `asked`; an `error` has one shape everywhere. `page` is a
//! client of `api` for browsers, `host_parts` are the parts of the host that users look into, and
//! `meters` counts. `rockbot_tools::http_server` has the connections.

mod ag_ui;
mod api;
mod asked;
mod door;
mod endpoint;
mod error;
mod host_parts;
mod limits;
mod meters;
mod openai;
mod page;
mod parts;
pub mod settings;
mod sign_in;
mod sse;
mod subsystem;

pub use endpoint::WebEndpoint;
pub use sign_in::WebUser;
pub use subsystem::WebServer;
