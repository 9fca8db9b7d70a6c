//! The turn journal in files: a write-ahead log of append-only segments that all turns share.
//!
//! A record is one line of JSON, written with one system call before the act that it announces.
//! Lines of different turns follow each other in the order of their events. An in-memory index
//! (`index`), rebuilt from the heads of all lines at the start (`load`, `head`), knows the
//! locations of each unfinished turn's lines; `read` gets them back. A full segment is replaced
//! by the next segment, and gets an index, so that the next start need not check its lines
//! (`segment_index`). It is removed once it only tells of turns whose outcome has expired
//! (`retention`).
//!
//! A crash can leave a torn last line. Opening the segment for appending terminates it with a
//! newline, and loading skips it: its record was never acknowledged. `group_commit` shares one
//! sync of the disk between all who wait for one.
//!
//! The files are `turns/turns-00000001.jsonl`, …; `lock` is held by the process that has the
//! journal open. A line is `accepted`, `record` (an event and the decided steps) or `finished`,
//! under the format version of its `accepted` line. Unreadable lines stay in place.
//!
//! The index is rebuilt at start, segments in parallel; it has 44 bytes for a finished run, and
//! the digest of its message stays on the disk. A segment that is full gets an index of its own
//! (`turns-00000001.index`), written away from the turn that filled it: it has the segment's
//! length and checksum, and is a cache. Of the last segment, and of a segment whose index is
//! missing or does not fit, the start reads the heads of all lines. Reads run without the lock
//! and repeat if a compaction came in between.
//!
//! Outcomes are kept for one day; then lines of expired runs are removed and lines of unfinished
//! runs kept. `Durability::Process`, the default, survives `kill -9`; `Durability::Synced` also
//! waits for the disk at acceptance and before mutating calls, by group commit.

mod ended_run;
mod error;
mod file;
mod group_commit;
mod head;
mod index;
mod line;
mod load;
mod options;
mod read;
mod retention;
mod run_hash;
mod segment;
mod segment_index;

pub(crate) use group_commit::GroupCommit;

pub use file::FileTurnJournal;
pub use options::{Durability, JournalOptions};
