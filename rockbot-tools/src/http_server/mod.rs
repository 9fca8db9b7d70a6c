//! The connections of an HTTP server: which client has one, for how long, and which client gives
//! one up.
//!
//! `places` bounds the connections so that no client locks out another client; `connections`
//! accepts and ends them, `serving` holds all tasks of the server, `names` checks the name that a
//! client calls the server by. The answers are up to the server.

mod connections;
mod names;
mod places;
mod serving;

pub use connections::{Answer, MAX_CONNECTIONS, listen, serve};
pub use names::{AcceptedNames, UnknownName};
pub use places::Places;
pub use serving::Serving;
