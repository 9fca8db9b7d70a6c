//! The connections of an HTTP server: who has one, for how long, and who gives one up.
//!
//! `places` is the bound that no client locks out another one by; `connections` accepts and ends
//! them. What is answered is the server's own.

mod connections;
mod places;

pub use connections::{Answer, serve};
pub use places::Places;
