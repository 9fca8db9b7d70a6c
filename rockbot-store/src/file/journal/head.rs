//! The heads of lines: as much of a line as the index needs.

use std::borrow::Cow;
use std::fs::File;
use std::io;

use rockbot_core::{Digest, Timestamp, TurnId};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::ended_run::EndedRun;
use super::run_hash::RunHash;
use super::segment::{self, RecordLocation};

/// The head of a line, or of all lines of a run.
#[derive(Debug)]
pub(super) enum LineHead {
    /// The acceptance of a run.
    Accepted { run: TurnId, digest: Digest },
    /// An event of a run.
    Record { run: RunHash },
    /// The end of a run.
    Finished { run: RunHash, at: Timestamp },
    /// A run that began and ended in one segment, by the index of that.
    Ended { run: RunHash, ended: EndedRun },
}

/// The heads of the lines of one segment, in order.
#[derive(Debug, Default)]
pub(super) struct SegmentHeads {
    pub(super) heads: Vec<(RecordLocation, LineHead)>,
    pub(super) unreadable: u64,
}

impl SegmentHeads {
    /// Reads the heads of all lines of a segment.
    pub(super) fn read(file: &File, number: u32) -> io::Result<Self> {
        let mut segment = Self::default();
        segment::read_file(file, number, 0, |location, line| {
            match parse(line) {
                Ok(head) => segment.heads.push((location, head)),
                Err(_) => segment.unreadable += u64::from(!line.trim_ascii().is_empty()),
            }
            true
        })?;
        Ok(segment)
    }
}

/// A line of a segment as it stands in the buffer: the same members as
/// [`JournalLine`](super::line::JournalLine), without a copy. A line that either type cannot read
/// is unreadable by the other, too.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum BorrowedLine<'a> {
    Accepted(#[serde(borrow)] BorrowedAcceptance<'a>),
    Record {
        #[serde(borrow)]
        run: Cow<'a, str>,
        #[serde(rename = "record")]
        _record: BorrowedRecord<'a>,
    },
    Finished {
        #[serde(borrow)]
        run: Cow<'a, str>,
        #[serde(rename = "digest")]
        _digest: Digest,
        at: Timestamp,
        #[serde(rename = "outcome")]
        _outcome: &'a RawValue,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BorrowedAcceptance<'a> {
    #[serde(borrow)]
    run: Cow<'a, str>,
    #[serde(rename = "key")]
    _key: BorrowedKey<'a>,
    digest: Digest,
    #[serde(rename = "at")]
    _at: Timestamp,
    #[serde(rename = "body")]
    _body: &'a RawValue,
}

#[derive(Deserialize)]
struct BorrowedKey<'a> {
    #[serde(borrow, rename = "principal")]
    _principal: Cow<'a, str>,
    #[serde(borrow, default, rename = "source")]
    _source: Cow<'a, str>,
    #[serde(borrow, rename = "session")]
    _session: Cow<'a, str>,
    #[serde(borrow, rename = "message")]
    _message: Cow<'a, str>,
}

#[derive(Deserialize)]
struct BorrowedRecord<'a> {
    #[serde(rename = "at")]
    _at: Timestamp,
    #[serde(default, rename = "critical")]
    _critical: bool,
    #[serde(borrow, rename = "body")]
    _body: &'a RawValue,
}

/// Parses the head of a line. All of the line is checked: a torn line must not count.
pub(super) fn parse(line: &[u8]) -> io::Result<LineHead> {
    Ok(match serde_json::from_slice(line)? {
        BorrowedLine::Accepted(accepted) => LineHead::Accepted {
            run: (&*accepted.run).into(),
            digest: accepted.digest,
        },
        BorrowedLine::Record { run, .. } => LineHead::Record { run: RunHash::of(&run) },
        BorrowedLine::Finished { run, at, .. } => LineHead::Finished {
            run: RunHash::of(&run),
            at,
        },
    })
}

#[cfg(test)]
mod tests {
    use rockbot_core::testing::Mutations;

    use super::super::line::{self, JournalLine};
    use super::*;

    const LINES: [&str; 3] = [
        r#"{"accepted":{"run":"0123456789abcdef0123456789abcdef","key":{"principal":"local","source":"a\n","session":"s","message":"m"},"digest":"0000000000000000000000000000000000000000000000000000000000000000","at":1,"body":{"text":["a","\"}"]}}}"#,
        r#"{"record":{"run":"r1","record":{"at":2,"critical":true,"body":{"said":{"a":null}}}}}"#,
        r#"{"finished":{"run":"r1","digest":"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff","at":3,"outcome":{}}}"#,
    ];

    #[test]
    fn the_head_of_a_line_says_what_the_line_says() {
        Mutations::of(LINES).check(|text| match (parse(text), line::parse(text)) {
            (Err(_), Err(_)) => {}
            (Ok(LineHead::Accepted { run, digest }), Ok(JournalLine::Accepted(line))) => {
                assert_eq!((run, digest), (line.run, line.digest));
            }
            (Ok(LineHead::Record { run }), Ok(JournalLine::Record { run: of, .. })) => {
                assert_eq!(run, RunHash::from(&of));
            }
            (Ok(LineHead::Finished { run, at }), Ok(JournalLine::Finished { run: of, at: when, .. })) => {
                assert_eq!((run, at), (RunHash::from(&of), when));
            }
            (head, line) => panic!("{head:?} is the head of {line:?}"),
        });
    }
}
