//! Busy sessions and hosts: the policy of a message, and the refusal of one because too many wait
//! already.

use serde::{Deserialize, Serialize};

/// The policy for a message whose session is busy with another turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BusyPolicy {
    /// The message waits in the session's queue. The default.
    #[default]
    Queue,
    /// The message joins the running turn at that turn's next model call. With an output schema,
    /// tier, budget, model settings, tools, namespace, result mode, recipient, instructions, history
    /// or extensions of its own it waits in the queue instead.
    Steer,
    /// The message replaces the running turn, and turns of its session that wait for an approval.
    Supersede,
}

/// The bound of a host's backlog that refused a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Busy {
    /// Too many messages wait in the session.
    #[error(
        "{messages} messages of {bytes} bytes wait in this session already: send this one again when some are answered"
    )]
    Session {
        /// Number of messages that wait in the session.
        messages: usize,
        /// Length of their texts in bytes.
        bytes: usize,
    },
    /// Too many messages of one principal are unanswered.
    #[error(
        "the agent works on {messages} messages of {bytes} bytes of this user already: send this one again when some are answered"
    )]
    Principal {
        /// Number of the principal's unanswered messages.
        messages: usize,
        /// Length of their texts in bytes.
        bytes: usize,
    },
    /// Too many messages of the host are unanswered.
    #[error("the agent works on {messages} messages of {bytes} bytes already: send this one again a little later")]
    Host {
        /// Number of unanswered messages.
        messages: usize,
        /// Length of their texts in bytes.
        bytes: usize,
    },
}

impl Busy {
    /// Returns `true`: there is room again once messages are answered.
    pub fn retry_helps(&self) -> bool {
        true
    }
}
