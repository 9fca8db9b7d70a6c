//! The integration tests: one binary, through the public surface only.

mod agent;
mod parallel;
mod support;
mod tools;
