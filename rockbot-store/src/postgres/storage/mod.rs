//! The connections to the server, the schema with its migrations, documents in tables, and the error
//! of all.

mod database;
mod documents;
mod error;
pub(in crate::postgres) mod row;
mod schema;
mod tls;

pub(in crate::postgres) use database::{Database, now, statements};
pub(in crate::postgres) use documents::{Documents, Rows, forget_deletions};
pub use error::PostgresError;
pub(in crate::postgres) use error::QueryError;
pub(in crate::postgres) use schema::VERSION;
