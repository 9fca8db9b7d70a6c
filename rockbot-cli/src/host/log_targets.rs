//! The targets of a program's log.

use rockbot::BoxError;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// The client of RabbitMQ. It logs each message that the broker returns with all its bytes, as a
/// warning, and the library says what became of the message. So its events are logged only where
/// `RUST_LOG` names it.
const AMQP_CLIENT: &str = "lapin";

/// Returns the targets that `RUST_LOG` names, or `default` without it.
pub(crate) fn targets(default: Targets) -> Result<Targets, BoxError> {
    let targets = match std::env::var("RUST_LOG") {
        Ok(text) if text.contains(AMQP_CLIENT) => return read(&text),
        Ok(text) => read(&text)?,
        Err(_) => default,
    };
    Ok(targets.with_target(AMQP_CLIENT, LevelFilter::OFF))
}

fn read(text: &str) -> Result<Targets, BoxError> {
    let read = text.parse();
    read.map_err(|error| format!("RUST_LOG is `{text}`, which cannot be read: {error}; try `info`").into())
}
