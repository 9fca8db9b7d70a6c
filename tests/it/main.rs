//! The integration tests: one binary, through the public surface only.

mod agent;
mod approvals;
mod budget;
mod crash;
mod golden;
mod journal;
mod layers;
mod parallel;
mod sessions;
mod support;
mod tools;
