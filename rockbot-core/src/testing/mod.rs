//! What tests of agents are made of: a scripted model, a mock tool, a manual clock, conformance suites.

pub mod conformance;
