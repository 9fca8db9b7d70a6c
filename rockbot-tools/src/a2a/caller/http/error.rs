//! The reasons why an agent gives no usable answer.

use super::MAX_ANSWER;
use crate::egress::EgressError;

/// Codes of errors that have a meaning here.
pub(super) const BUSY: i64 = -32_000;
pub(super) const TASK_NOT_FOUND: i64 = -32_001;

/// The reason why an operation has no usable answer.
#[derive(Debug)]
pub(super) enum PeerError {
    /// There was no answer.
    Egress(EgressError),
    /// The agent answered with this status of HTTP, without words of the protocol.
    Status(u16),
    /// The agent answered with an error of the protocol.
    Refused { code: i64, message: String },
    /// The answer is not of the protocol.
    Unreadable,
    /// The answer is longer than is read.
    TooLong,
    /// The agent's card cannot be used.
    Card(&'static str),
    /// The authorization server of this issuer grants no token, so that nothing was sent.
    Account {
        issuer: String,
        problem: String,
        is_passing: bool,
    },
}

impl PeerError {
    /// Returns `true` if the same request may be answered later.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Egress(error) => error.retry_helps(),
            Self::Status(status) => *status == 429 || *status >= 500,
            Self::Refused { code, .. } => *code == BUSY,
            Self::Account { is_passing, .. } => *is_passing,
            Self::Unreadable | Self::TooLong | Self::Card(_) => false,
        }
    }

    /// Returns `true` if the agent did not get the request.
    pub(super) fn was_not_sent(&self) -> bool {
        match self {
            Self::Egress(error) => !error.was_sent(),
            Self::Account { .. } => true,
            _ => false,
        }
    }

    /// Returns the words about the failure, for a model and its user.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Egress(error) => error.to_string(),
            Self::Status(status @ (401 | 403)) => format!(
                "it does not let this host in (HTTP {status}): the operator sets its key or account, with its URL, in \
                 `A2A.Agents`"
            ),
            Self::Status(status) => {
                format!("it answers with the status {status} of HTTP, and no words of the protocol")
            }
            Self::Refused { .. } => "it refuses the request".to_owned(),
            Self::Unreadable => "its answer is not of the A2A protocol".to_owned(),
            Self::TooLong => format!("its answer has more than {} MiB", MAX_ANSWER >> 20),
            Self::Card(problem) => (*problem).to_owned(),
            Self::Account { issuer, problem, .. } => format!(
                "its authorization server `{issuer}` {problem}: the operator checks the account in `A2A.Agents`"
            ),
        }
    }
}

impl From<EgressError> for PeerError {
    fn from(error: EgressError) -> Self {
        Self::Egress(error)
    }
}
