//! Runs the Python scripts of agents: takes requests from a bus, runs each in a sandbox, and
//! publishes the result.
//!
//! The program `rockbot-scripts-manager` connects to the broker in the section `RabbitMq` of its
//! settings. An agent with `Scripts::remote()`, or the setting `Scripts.Runner = "remote"`, gives
//! it scripts, and needs neither a sandbox nor rights in a cluster itself. [`ScriptsManager`] is
//! the same without the program, for a bus and a runner of your own.
//!
//! * `manager.rs`: the subscriptions, and their end.
//! * `requests.rs`: a request from its arrival to its answer; `runs.rs` knows the requests that
//!   came.
//! * `settings.rs`: the sections of the configuration.
//! * `kubernetes/`: the backend that runs each script in a pod, with the feature `kubernetes`.
#![warn(clippy::print_stdout, clippy::print_stderr)]

#[cfg(feature = "kubernetes")]
mod kubernetes;
mod manager;
mod questions;
mod requests;
mod runs;
mod settings;

pub use manager::{RunningScriptsManager, ScriptsManager};
pub use settings::{Backend, ScriptsManagerSettings};
