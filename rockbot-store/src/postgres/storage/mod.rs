//! The connections to the server, the schema with its migrations, and the error of both.

mod database;
mod error;
pub(in crate::postgres) mod row;
mod schema;
mod tls;

pub(in crate::postgres) use database::{Database, now, statements};
pub use error::PostgresError;
pub(in crate::postgres) use error::QueryError;
