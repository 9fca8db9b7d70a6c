//! The log of a program at a terminal: warnings of the library on standard error, or as much as
//! `RUST_LOG` says.

use rockbot::BoxError;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

use super::log_targets;

/// Installs the log. The libraries only emit events; each program chooses what becomes of them.
pub fn install() -> Result<(), BoxError> {
    // Clients of brokers repeat the library's reports about them. A failed model call is told at
    // the end of its turn.
    let default = Targets::new()
        .with_target("rockbot", LevelFilter::WARN)
        .with_target("rockbot_llm", LevelFilter::ERROR);
    let targets = log_targets::targets(default)?;
    let lines = tracing_subscriber::fmt::layer()
        .without_time()
        .with_target(false)
        .with_writer(std::io::stderr);
    tracing_subscriber::registry().with(lines).with(targets).try_init()?;
    Ok(())
}
