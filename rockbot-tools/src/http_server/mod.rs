//! The connections of an HTTP server: which client has one, for how long, and which client gives
//! one up.
//!
//! `places` bounds the connections so that no client locks out another client; `connections`
//! accepts and ends them. The answers are up to the server.

mod connections;
mod places;

pub use connections::{Answer, serve};
pub use places::Places;
