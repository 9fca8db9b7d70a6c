//! The program over a real broker: told to end, killed and started again.
#![cfg(feature = "rabbitmq")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod agent;
#[cfg(feature = "kubernetes")]
mod node;
mod sandbox;
