//! The connections of an HTTP server: which client has one, for how long, and which client gives
//! one up.
//!
//! `places` bounds the connections so that no client locks out another client; `connections`
//! accepts and ends them, `serving` holds all tasks of the server. The answers are up to the server.

mod connections;
mod places;
mod serving;

pub use connections::{Answer, serve};
pub use places::Places;
pub use serving::Serving;
