//! The building blocks that the SQLite stores share.
//!
//! * [`Database`]: the open file with its writer thread and its pool of read connections
//! * [`IndexedTable`]: a table of JSON documents and the index of their words
//! * [`row`]: conversion between rows and JSON
//!
//! A write passes from a store to the queue of the `writer` thread, which commits up to 256
//! queued writes in one transaction, each inside a savepoint. A read takes a connection from the
//! `read_pool` on a blocking thread.

mod connection;
mod database;
mod error;
mod indexed_table;
mod read_pool;
pub(super) mod row;
mod schema;
mod table;
mod writer;

pub(super) use database::Database;
pub(super) use error::QueryError;
pub use error::SqliteError;
pub(super) use indexed_table::{IndexedTable, IndexedWrite};
pub(super) use table::Table;
