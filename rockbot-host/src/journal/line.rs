//! One line of a segment.

use rockbot_core::turn::{RunAccepted, RunRecord};
use rockbot_core::{Digest, Timestamp, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What a line says, as it is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JournalLine {
    /// A run was accepted.
    Accepted(RunAccepted),
    /// Something happened to a run.
    Record { run: TurnId, record: RunRecord },
    /// A run ended.
    Finished {
        run: TurnId,
        digest: Digest,
        at: Timestamp,
        outcome: Box<RawValue>,
    },
}

/// The same, as it is written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JournalLineRef<'a> {
    Accepted(&'a RunAccepted),
    Record {
        run: &'a TurnId,
        record: &'a RunRecord,
    },
    Finished {
        run: &'a TurnId,
        digest: Digest,
        at: Timestamp,
        outcome: &'a RawValue,
    },
}

impl JournalLineRef<'_> {
    /// Appends the line, newline included.
    pub(super) fn write_to(&self, buffer: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(&mut *buffer, self)?;
        buffer.push(b'\n');
        Ok(())
    }
}
