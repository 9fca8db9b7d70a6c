//! The turn journal on disk: a write-ahead log of append-only segments that all turns share.
//!
//! A record is one line of JSON, written with one system call before the act that it announces. Lines of different
//! turns follow each other in the order in which they happened. An in-memory index (`index`), rebuilt from the
//! heads of all lines at the start (`load`, `head`), knows the locations of each unfinished turn's lines; `read` gets them back. A
//! segment is replaced by the next one when it is full, gets an index by which the next start need not check its lines
//! (`segment_index`), and removed once it only tells of turns whose outcome has
//! expired (`retention`).
//!
//! A crash can leave a torn last line. Opening the segment for appending terminates it with a newline, and loading
//! skips it: its record was never acknowledged. `group_commit` shares one sync of the disk between all who wait for
//! one.

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
mod shared;

pub(crate) use group_commit::GroupCommit;
pub(crate) use shared::SharedTurnJournal;

pub use file::FileTurnJournal;
pub use options::{Durability, JournalOptions};
