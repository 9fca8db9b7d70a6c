//! The integration tests: one binary, through the public surface only.

mod agent;
