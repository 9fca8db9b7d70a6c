//! The form of a turn in a journal, and its replay.
//!
//! The accepted record has the request and the settings; each further record has an event *and*
//! the steps that were decided then. A replay repeats decisions and never makes them, so a newer
//! version of this crate can continue a turn that an older version began.

use std::sync::Arc;

use rockbot_core::Timestamp;
use rockbot_core::turn::{RunAccepted, RunBody, RunKey, RunRecord, StoredRun, TurnRequest};
use serde::{Deserialize, Serialize};

use super::event::TurnEvent;
use super::machine::Turn;
use super::settings::PolicySnapshot;
use super::step::TurnStep;

/// The version of the form. A turn whose journal has another version ends with a reply that
/// states so.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// The accepted record of a turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AcceptedTurn {
    /// The [`FORMAT_VERSION`] of the writer.
    pub(crate) version: u32,
    /// The request.
    pub(crate) request: Arc<TurnRequest>,
    /// The settings that it was accepted with.
    pub(crate) policy: PolicySnapshot,
}

/// A record of an event, and of the steps that were decided then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedEvent {
    /// The event.
    pub(crate) event: TurnEvent,
    /// The steps, in the order of their performance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) steps: Vec<TurnStep>,
}

/// The error for a turn whose journal has an unknown form.
#[derive(Debug, thiserror::Error)]
#[error("the journal of this turn has a form that this version cannot read")]
pub struct UnknownVersion(#[source] Option<serde_json::Error>);

impl AcceptedTurn {
    /// Converts the record to the acceptance that a journal stores.
    pub(crate) fn into_run(self, at: Timestamp) -> RunAccepted {
        let request = &self.request;
        let key = RunKey::new(
            request.principal.clone(),
            request.session.clone(),
            request.message.clone(),
        )
        .with_source(request.source.clone());
        let run = request.turn_id();
        let digest = request.body_digest();
        let is_ordered = request.parent.is_none();
        RunAccepted::new(run, key, digest, at, RunBody::new(Arc::new(self))).with_ordered(is_ordered)
    }
}

/// Creates the record of an event and the steps decided then. `critical` is `true` when a
/// mutating call is about to start: then a journal with synced durability waits for the disk.
pub(crate) fn record(event: TurnEvent, steps: Vec<TurnStep>, at: Timestamp, critical: bool) -> RunRecord {
    let body = RunBody::new(Arc::new(RecordedEvent { event, steps }));
    RunRecord::new(at, body).with_critical(critical)
}

/// Reads the accepted record of `run`.
pub(super) fn parse_accepted(run: &StoredRun) -> Result<AcceptedTurn, UnknownVersion> {
    let accepted: AcceptedTurn = run.accepted.body.parse().map_err(unknown)?;
    match accepted.version {
        FORMAT_VERSION => Ok(accepted),
        _ => Err(UnknownVersion(None)),
    }
}

/// Reads one record of an event.
pub(super) fn parse_record(record: &RunRecord) -> Result<RecordedEvent, UnknownVersion> {
    record.body.parse().map_err(unknown)
}

fn unknown(error: serde_json::Error) -> UnknownVersion {
    UnknownVersion(Some(error))
}

impl Turn {
    /// Replays the records of `run`, and returns the turn as it was after the last record.
    ///
    /// # Errors
    ///
    /// Returns an error if a record has another version, or an event that this version does not know.
    pub(crate) fn from_run(run: &StoredRun) -> Result<Self, UnknownVersion> {
        let accepted = parse_accepted(run)?;
        let mut turn = Self::new(accepted.request, accepted.policy, run.accepted.at);
        for record in &run.records {
            let recorded = parse_record(record)?;
            turn.replay(&recorded.event, &recorded.steps, record.at);
        }
        Ok(turn)
    }
}
