//! The integration tests: one binary, through the public surface only.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod agent;
mod approvals;
mod budget;
mod cancel;
mod crash;
mod golden;
mod journal;
mod layers;
mod parallel;
mod sessions;
mod support;
mod tidy;
mod tools;
