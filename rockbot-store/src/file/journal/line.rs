//! The line format of segments.

use std::io;

use rockbot_core::support::json;
use rockbot_core::turn::{RunAccepted, RunBody, RunRecord};
use rockbot_core::{Digest, Timestamp, TurnId};
use serde::{Deserialize, Serialize};

/// A line of a segment in the form for reading.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(Serialize))]
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
        outcome: RunBody,
    },
}

/// A line of a segment in the form for writing, which borrows its parts.
#[derive(Debug)]
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
        outcome: &'a RunBody,
    },
}

impl JournalLineRef<'_> {
    /// Appends the line to `buffer`, newline included.
    ///
    /// Written by hand: each turn writes a dozen lines, and little but the body varies in them.
    pub(super) fn write_to(&self, buffer: &mut Vec<u8>) -> serde_json::Result<()> {
        match *self {
            Self::Accepted(accepted) => {
                member(buffer, "{\"accepted\":{\"run\":", &accepted.run)?;
                member(buffer, ",\"key\":", &accepted.key)?;
                member(buffer, ",\"digest\":", &accepted.digest)?;
                member(buffer, ",\"at\":", &accepted.at)?;
                body(buffer, ",\"body\":", &accepted.body, "}}\n")
            }
            Self::Record { run, record } => {
                member(buffer, "{\"record\":{\"run\":", run)?;
                member(buffer, ",\"record\":{\"at\":", &record.at)?;
                let before = if record.critical {
                    ",\"critical\":true,\"body\":"
                } else {
                    ",\"body\":"
                };
                body(buffer, before, &record.body, "}}}\n")
            }
            Self::Finished {
                run,
                digest,
                at,
                outcome,
            } => {
                member(buffer, "{\"finished\":{\"run\":", run)?;
                member(buffer, ",\"digest\":", &digest)?;
                member(buffer, ",\"at\":", &at)?;
                body(buffer, ",\"outcome\":", outcome, "}}\n")
            }
        }
    }
}

/// Appends `before`, which ends with a name, and `value`.
fn member(buffer: &mut Vec<u8>, before: &str, value: &impl Serialize) -> serde_json::Result<()> {
    buffer.extend_from_slice(before.as_bytes());
    json::write(buffer, value)
}

/// Appends `before`, which ends with a name, `value` and the end of the line.
fn body(buffer: &mut Vec<u8>, before: &str, value: &RunBody, end: &str) -> serde_json::Result<()> {
    buffer.extend_from_slice(before.as_bytes());
    value.write_to(buffer)?;
    buffer.extend_from_slice(end.as_bytes());
    Ok(())
}

/// Parses a line of a segment.
pub(super) fn parse(line: &[u8]) -> io::Result<JournalLine> {
    serde_json::from_slice(line).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rockbot_core::turn::RunKey;

    use super::*;

    fn check(line: &JournalLineRef<'_>) {
        let mut written = Vec::new();
        line.write_to(&mut written).unwrap();
        let mut expected = serde_json::to_string(&parse(&written).unwrap()).unwrap();
        expected.push('\n');
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }

    #[test]
    fn a_line_is_written_as_it_is_read() {
        let run = TurnId::from("a\"b");
        let digest = Digest::of(["x"]);
        let at = Timestamp::from_millis(7);
        let outcome = RunBody::new(Arc::new(("é\n", 1.5)));
        let key = RunKey::new("me".into(), "s\n", "m");
        for key in [key.clone(), key.with_source("bus")] {
            check(&JournalLineRef::Accepted(&RunAccepted::new(
                run.clone(),
                key,
                digest,
                at,
                outcome.clone(),
            )));
        }
        for critical in [false, true] {
            let record = &RunRecord::new(at, outcome.clone()).with_critical(critical);
            check(&JournalLineRef::Record { run: &run, record });
        }
        let run = &run;
        let outcome = &outcome;
        check(&JournalLineRef::Finished {
            run,
            digest,
            at,
            outcome,
        });
    }
}
