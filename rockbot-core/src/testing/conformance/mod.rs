//! Suites that every implementation of a contract passes: the framework's own, and yours.

pub mod bus;
