//! Media in a database: one row for each image or file, by its digest.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use rockbot_core::content::StoredMedia;
use rockbot_core::store::{MediaStore, StoreError};
use rockbot_core::{Clock, Digest, Principal, Timestamp};

use super::storage::row::{column, number};
use super::storage::{Database, now, statements};
use crate::storage::blocking::blocking;

/// Maximum number of media that a purge removes in one statement, so that it holds no lock for long.
const BATCH: i64 = 100;

statements! {
    /// A medium that is put again counts as new.
    PUT_AGAIN = "UPDATE media SET put_at = greatest(put_at, ", now!("$3"), ") WHERE principal = $1 AND digest = $2";
    PUT = "INSERT INTO media (principal, digest, put_at, bytes) VALUES ($1, $2, ", now!("$3"), ", $4)
        ON CONFLICT (principal, digest) DO UPDATE SET put_at = excluded.put_at, bytes = excluded.bytes";
    GET = "SELECT bytes FROM media WHERE principal = $1 AND digest = $2";
    PURGE = "DELETE FROM media WHERE ctid = ANY(ARRAY(SELECT ctid FROM media WHERE put_at < $1 LIMIT $2))";
}

/// The [`MediaStore`] of a [`Postgres`](super::Postgres).
///
/// The bytes of media are rows of the database, which each backup of it has.
#[derive(Debug)]
pub struct PostgresMediaStore {
    database: Arc<Database>,
    /// The clock of tests; the database's own without it.
    clock: Option<Arc<dyn Clock>>,
}

impl PostgresMediaStore {
    pub(super) fn new(database: Arc<Database>, clock: Option<Arc<dyn Clock>>) -> Self {
        Self { database, clock }
    }

    fn now(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| number(clock.now().as_millis()))
    }
}

#[async_trait]
impl MediaStore for PostgresMediaStore {
    async fn put(&self, principal: &Principal, bytes: Bytes) -> Result<StoredMedia, StoreError> {
        let (stored, bytes) = measured(bytes).await?;
        let (principal, digest) = (column(principal.as_str()), stored.digest.to_string());
        // Bytes that are there are not sent again.
        let known = self
            .database
            .write(PUT_AGAIN, &[&principal, &digest, &self.now()])
            .await?;
        if known == 0 {
            self.database
                .write(PUT, &[&principal, &digest, &self.now(), &&bytes[..]])
                .await?;
        }
        Ok(stored)
    }

    async fn get(&self, principal: &Principal, digest: &Digest) -> Result<Option<Bytes>, StoreError> {
        let rows = self
            .database
            .read(GET, &[&column(principal.as_str()), &digest.to_string()])
            .await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let (stored, bytes) = measured(row.get::<_, Vec<u8>>(0).into()).await?;
        // Bytes that someone changed are not the bytes that were put.
        Ok(Some(bytes).filter(|_| stored.digest == *digest))
    }

    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError> {
        let before = number(before.as_millis());
        let mut removed = 0;
        loop {
            let some = self.database.write(PURGE, &[&before, &BATCH]).await?;
            removed += some;
            if some == 0 {
                return Ok(removed);
            }
        }
    }
}

/// Returns bytes with their reference, whose digest takes a while for a large medium.
async fn measured(bytes: Bytes) -> Result<(StoredMedia, Bytes), StoreError> {
    blocking(move || Ok((StoredMedia::of(&bytes), bytes))).await
}
