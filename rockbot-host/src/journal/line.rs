//! The line format of segments.

use std::io;

use rockbot_core::support::json;
use rockbot_core::turn::{RunAccepted, RunRecord};
use rockbot_core::{Digest, Timestamp, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A line of a segment in the form for reading.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JournalLine {
    /// The acceptance of a run.
    Accepted(RunAccepted),
    /// An event of a run with the steps that were decided on it.
    Record { run: TurnId, record: RunRecord },
    /// The end of a run with its outcome, which answers redelivered messages.
    Finished {
        run: TurnId,
        digest: Digest,
        at: Timestamp,
        outcome: Box<RawValue>,
    },
}

/// A line of a segment in the form for writing, which borrows its parts.
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
    /// Appends the line to `buffer`, newline included.
    pub(super) fn write_to(&self, buffer: &mut Vec<u8>) -> serde_json::Result<()> {
        json::write(buffer, self)?;
        buffer.push(b'\n');
        Ok(())
    }
}

/// Parses a line of a segment.
pub(super) fn parse(line: &[u8]) -> io::Result<JournalLine> {
    serde_json::from_slice(line).map_err(io::Error::from)
}
