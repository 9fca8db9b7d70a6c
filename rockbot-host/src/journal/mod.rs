//! The turn journal on disk: append-only segments shared by all turns.
//!
//! A record is one line of JSON, written with one call. RunLines of different turns follow each other as they
//! happen; an index in memory knows where each unfinished turn's lines are. A segment that only tells of turns
//! that ended a day ago is removed.

mod file;
mod group_commit;
mod index;
mod line;
mod segment;

pub(crate) use group_commit::GroupCommit;

pub use file::{Durability, FileTurnJournal, JournalOptions};
