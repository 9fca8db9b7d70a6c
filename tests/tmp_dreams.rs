#![allow(clippy::unwrap_used, clippy::panic)]
#[path = "it/dreams.rs"]
mod dreams;
