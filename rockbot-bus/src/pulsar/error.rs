//! Errors of the broker's client as errors of the bus.

use pulsar::Error;
use pulsar::error::{ConnectionError, ConsumerError, ProducerError, ServiceDiscoveryError};
use pulsar::proto::ServerError;
use rockbot_core::BoxError;
use rockbot_core::messaging::BusError;

use super::settings::PulsarSettings;

/// Creates the error of an operation: `doing` reads "cannot publish on".
pub(super) fn provider(doing: &str, settings: &PulsarSettings, source: impl Into<BoxError>) -> BusError {
    BusError::Provider {
        context: format!(
            "{doing} the broker at {}: check that it runs and that the settings in `Pulsar` are right",
            settings.url()
        ),
        source: source.into(),
    }
}

/// The broker's answer to an operation, which leaves the connection intact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The same operation may succeed a little later.
    NotYet,
    /// A quota is used up: the topic takes no more messages.
    Full,
    /// The name is in use by an exclusive consumer, or for a subscription of another kind.
    Busy,
    /// It will not succeed.
    Never,
}

/// Returns the broker's answer, or `None` if the connection was lost.
pub(super) fn answer(error: &Error) -> Option<Answer> {
    let kind = match error {
        Error::Connection(ConnectionError::PulsarError(kind, _))
        | Error::Producer(ProducerError::Connection(ConnectionError::PulsarError(kind, _)))
        | Error::Consumer(ConsumerError::Connection(ConnectionError::PulsarError(kind, _)))
        | Error::ServiceDiscovery(
            ServiceDiscoveryError::Query(kind, _)
            | ServiceDiscoveryError::Connection(ConnectionError::PulsarError(kind, _)),
        ) => *kind,
        _ => return None,
    };
    Some(match kind {
        Some(ServerError::ServiceNotReady | ServerError::ProducerBusy | ServerError::TooManyRequests) => Answer::NotYet,
        Some(ServerError::ProducerBlockedQuotaExceededError | ServerError::ProducerBlockedQuotaExceededException) => {
            Answer::Full
        }
        Some(ServerError::ConsumerBusy | ServerError::ConsumerAssignError) => Answer::Busy,
        _ => Answer::Never,
    })
}
