//! The integration tests: one binary, through the public surface only.

mod agent;
mod approvals;
mod budget;
mod crash;
mod journal;
mod parallel;
mod sessions;
mod support;
mod tools;
