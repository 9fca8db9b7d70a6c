//! The form in which a turn stands in a journal.
//!
//! The accepted record says what is asked and under which settings; each further record holds an event *and*
//! the steps decided then. A replay repeats decisions and never makes them, so a newer version of this crate
//! can go on with a turn that an older one began.

use std::sync::Arc;

use rockbot_core::Timestamp;
use rockbot_core::turn::{JournalError, RunAccepted, RunKey, RunRecord, StoredRun, TurnRequest};
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;

use super::{PolicySnapshot, Turn, TurnEvent, TurnStep};

/// The version of the form. A journal with another one ends its turn with an honest reply.
pub const FORMAT_VERSION: u32 = 1;

/// A turn as it is accepted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AcceptedTurn {
    /// [`FORMAT_VERSION`] of whoever wrote it.
    pub version: u32,
    /// What is asked.
    pub request: Arc<TurnRequest>,
    /// Under which settings.
    pub policy: PolicySnapshot,
}

/// An event and the steps that were decided then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedEvent {
    /// What happened.
    pub event: TurnEvent,
    /// What was decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<TurnStep>,
}

/// A turn in a journal that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the journal of this turn has a form that this version cannot read")]
pub struct UnknownVersion(#[source] Option<serde_json::Error>);

impl AcceptedTurn {
    /// The form in which a journal accepts the turn.
    ///
    /// # Errors
    ///
    /// Fails when the request cannot be written as JSON.
    pub fn to_run(&self, at: Timestamp) -> Result<RunAccepted, serde_json::Error> {
        let request = &self.request;
        let key = RunKey {
            principal: request.principal.clone(),
            source: request.source.clone(),
            session: request.session.clone(),
            message: request.message.clone(),
        };
        Ok(RunAccepted {
            run: request.turn_id(),
            key,
            digest: request.body_digest(),
            at,
            body: to_raw_value(self)?,
        })
    }
}

/// The record of an event and the steps decided then. It is critical when a mutating call is about to start.
pub(crate) fn record(
    event: &TurnEvent,
    steps: &[TurnStep],
    at: Timestamp,
    critical: bool,
) -> Result<RunRecord, JournalError> {
    #[derive(Serialize)]
    struct Borrowed<'a> {
        event: &'a TurnEvent,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        steps: &'a [TurnStep],
    }
    let body = to_raw_value(&Borrowed { event, steps }).map_err(|error| JournalError::Io {
        context: "an event cannot be written as JSON".to_owned(),
        source: error.into(),
    })?;
    Ok(RunRecord { at, critical, body })
}

impl Turn {
    /// The turn that `run` tells of, as far as it got.
    ///
    /// # Errors
    ///
    /// Fails when another version wrote it.
    pub fn from_run(run: &StoredRun) -> Result<Self, UnknownVersion> {
        let parse = |error| UnknownVersion(Some(error));
        let accepted: AcceptedTurn = serde_json::from_str(run.accepted.body.get()).map_err(parse)?;
        if accepted.version != FORMAT_VERSION {
            return Err(UnknownVersion(None));
        }
        let mut turn = Self::new(accepted.request, accepted.policy, run.accepted.at);
        for record in &run.records {
            let recorded: RecordedEvent = serde_json::from_str(record.body.get()).map_err(parse)?;
            turn.replay(&recorded.event, &recorded.steps, record.at);
        }
        Ok(turn)
    }
}
