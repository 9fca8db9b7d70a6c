//! Errors of the broker's client as errors of the bus.

use lapin::ErrorKind;
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use rockbot_core::BoxError;
use rockbot_core::messaging::BusError;

use super::settings::RabbitMqSettings;

/// Creates the error of an operation: `doing` reads "cannot publish on".
pub(super) fn provider(doing: &str, settings: &RabbitMqSettings, source: impl Into<BoxError>) -> BusError {
    BusError::Provider {
        context: format!(
            "{doing} the broker at {}: check that it runs and that the settings in `RabbitMq` are right",
            settings.address()
        ),
        source: source.into(),
    }
}

/// Returns the broker's refusal of one operation, which leaves the connection intact.
pub(super) fn refusal(error: &lapin::Error) -> Option<AMQPSoftError> {
    match error.kind() {
        ErrorKind::ProtocolError(error) => match error.kind() {
            AMQPErrorKind::Soft(soft) => Some(soft.clone()),
            AMQPErrorKind::Hard(_) => None,
        },
        _ => None,
    }
}

/// Returns the error of declaring or consuming the queue of subscription `name`.
pub(super) fn subscribing(error: lapin::Error, name: &str, settings: &RabbitMqSettings) -> BusError {
    match refusal(&error) {
        // The queue exists with other arguments, or belongs to another connection.
        Some(AMQPSoftError::PRECONDITIONFAILED | AMQPSoftError::RESOURCELOCKED) => BusError::Conflict(name.to_owned()),
        _ => provider("cannot subscribe on", settings, error),
    }
}

/// Returns `true` if the operation was about a queue that does not exist.
pub(super) fn is_missing(error: &lapin::Error) -> bool {
    refusal(error) == Some(AMQPSoftError::NOTFOUND)
}
