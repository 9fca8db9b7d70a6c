//! The integration tests: one binary, through the public surface only.

mod agent;
mod approvals;
mod budget;
mod parallel;
mod sessions;
mod support;
mod tidy;
mod tools;
