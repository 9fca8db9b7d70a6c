//! Parts that programs around an agent share: brokers by name, families of tools by option, logs.

use std::path::PathBuf;

use rockbot::prelude::*;

pub mod bridges;
pub mod broker;
pub mod bus;
pub mod calculator;
pub mod database;
pub mod endpoint;
pub mod log;
mod log_targets;
pub(crate) mod outside;
pub(crate) mod read_file;
pub mod serve_a2a;
pub mod serve_mcp;
pub mod serve_web;
pub mod service_bus;
pub mod stop_signals;
pub mod telemetry;
pub mod words;
pub mod world;

/// Returns the tools of the terminal's agent: a calculator, and a reader of text files below
/// `root`.
pub fn tools(root: PathBuf) -> [Tool; 2] {
    // The calculator tells nothing that others wrote, so a conversation stays as trusted as it was.
    [calculator::calculator().own_output(), read_file::read_file(root)]
}
