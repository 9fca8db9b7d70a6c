//! Documents that the processes of an agent change one after another, in a database.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::Clock;
use rockbot_core::store::{LockedDocument, SharedDocuments, StoreError, StoreErrorKind};
use tokio::time::{Instant, sleep};

use super::storage::row::{column, number};
use super::storage::{Database, now, statements};

/// Pause between two attempts to lock a document, and the time after which the change fails: longer
/// than the lock of a process that died.
const PAUSE: Duration = Duration::from_millis(20);
const MAX_WAIT: Duration = Duration::from_secs(15);

statements! {
    VERSION = "SELECT version FROM shared_document WHERE name = $1";
    /// No row comes back while another process has the lock.
    LOCK = "INSERT INTO shared_document (name, fence, held_until) VALUES ($1, 1, ", now!("$2"), " + 10000)
        ON CONFLICT (name) DO UPDATE SET fence = shared_document.fence + 1, held_until = excluded.held_until
            WHERE shared_document.held_until <= excluded.held_until - 10000
        RETURNING version, json, fence";
    REPLACE = "UPDATE shared_document SET version = version + 1, json = $3, held_until = 0
        WHERE name = $1 AND fence = $2 AND held_until > ", now!("$4"), " RETURNING version";
    RELEASE = "UPDATE shared_document SET held_until = 0 WHERE name = $1 AND fence = $2";
}

/// The [`SharedDocuments`] of a [`Postgres`](super::Postgres).
#[derive(Debug)]
pub struct PostgresSharedDocuments {
    database: Arc<Database>,
    /// The clock of tests; the database's own without it.
    clock: Option<Arc<dyn Clock>>,
}

impl PostgresSharedDocuments {
    pub(super) fn new(database: Arc<Database>, clock: Option<Arc<dyn Clock>>) -> Self {
        Self { database, clock }
    }

    fn now(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| number(clock.now().as_millis()))
    }

    async fn try_lock(&self, name: &str) -> Result<Option<LockedDocument>, StoreError> {
        let rows = self.database.query(LOCK, &[&column(name), &self.now()]).await;
        let rows = rows.map_err(|error| self.database.unwritten(error))?;
        let locked =
            |row: &tokio_postgres::Row| LockedDocument::new(name, size(row.get(0)), row.get(1), size(row.get(2)));
        Ok(rows.first().map(locked))
    }
}

#[async_trait]
impl SharedDocuments for PostgresSharedDocuments {
    async fn version(&self, name: &str) -> Result<u64, StoreError> {
        let rows = self.database.read(VERSION, &[&column(name)]).await?;
        Ok(rows.first().map_or(0, |row| size(row.get(0))))
    }

    async fn lock(&self, name: &str) -> Result<LockedDocument, StoreError> {
        let begun = Instant::now();
        loop {
            if let Some(locked) = self.try_lock(name).await? {
                return Ok(locked);
            }
            if begun.elapsed() > MAX_WAIT {
                let context = format!("`{name}` is being changed by other processes; try again");
                return Err(StoreError::new(StoreErrorKind::Unavailable, context));
            }
            sleep(PAUSE).await;
        }
    }

    async fn replace(&self, locked: LockedDocument, json: String) -> Result<u64, StoreError> {
        let fence = number(locked.fence);
        let replaced = self
            .database
            .query(REPLACE, &[&column(&locked.name), &fence, &json, &self.now()])
            .await
            .map_err(|error| self.database.unwritten(error))?;
        let version = replaced.first().map(|row| size(row.get(0)));
        version.ok_or_else(|| {
            let context = format!(
                "the change of `{}` took too long, and is not made; try again",
                locked.name
            );
            StoreError::new(StoreErrorKind::Conflict, context)
        })
    }

    async fn release(&self, locked: LockedDocument) {
        let released = self
            .database
            .write(RELEASE, &[&column(&locked.name), &number(locked.fence)])
            .await;
        if let Err(error) = released {
            tracing::debug!(%error, "a document is not released; its lock ends by itself");
        }
    }
}

fn size(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
