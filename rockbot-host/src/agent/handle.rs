//! A turn that goes on by itself.

use rockbot_core::TurnId;
use rockbot_core::turn::{TurnError, TurnOutcome};

use super::{Agent, TurnStream};

/// A handle to a turn that was [started](super::AgentRequest::start). Dropping it leaves the turn
/// alone.
#[derive(Debug, Clone)]
pub struct TurnHandle {
    agent: Agent,
    id: TurnId,
}

impl TurnHandle {
    pub(super) fn new(agent: Agent, id: TurnId) -> Self {
        Self { agent, id }
    }

    /// Returns the id of the turn.
    pub fn id(&self) -> &TurnId {
        &self.id
    }

    /// Returns a stream of the turn's progress, from its beginning on; see [`Agent::attach`].
    ///
    /// # Errors
    ///
    /// Returns an error as [`Agent::attach`] does.
    pub async fn stream(&self) -> Result<TurnStream, TurnError> {
        self.agent.attach(&self.id).await
    }

    /// Waits for the end of the turn; see [`Agent::outcome`].
    ///
    /// # Errors
    ///
    /// Returns an error as [`Agent::outcome`] does.
    pub async fn outcome(&self) -> Result<TurnOutcome, TurnError> {
        self.agent.outcome(&self.id).await
    }

    /// Cancels the turn; see [`Agent::cancel`].
    ///
    /// # Errors
    ///
    /// Returns an error as [`Agent::cancel`] does.
    pub async fn cancel(&self) -> Result<(), TurnError> {
        self.agent.cancel(&self.id).await
    }
}
