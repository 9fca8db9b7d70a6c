//! Vectors of texts in a database, which each process computes for all.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::embedding::Embedding;
use rockbot_core::store::{StoreError, VectorCache};
use rockbot_core::{Digest, Principal};
use tokio_postgres::Row;

use super::storage::row::column;
use super::storage::{Database, statements};
use crate::storage::vector_bytes;

/// Maximum number of vectors that are read in one statement: some 6 MB of most models.
const BATCH: usize = 1_000;

statements! {
    LOAD = "SELECT text, numbers FROM vector WHERE principal = $1 AND text = ANY($2)";
    ADD = "INSERT INTO vector (principal, text, numbers) SELECT $1, * FROM unnest($2::text[], $3::bytea[])
        ON CONFLICT (principal, text) DO UPDATE SET numbers = excluded.numbers";
    COUNT = "SELECT count(*) FROM vector WHERE principal = $1";
    RETAIN = "DELETE FROM vector WHERE principal = $1 AND text <> ALL($2)";
}

/// The [`VectorCache`] of a [`Postgres`](super::Postgres).
#[derive(Debug)]
pub struct PostgresVectorCache {
    database: Arc<Database>,
}

impl PostgresVectorCache {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self { database }
    }
}

#[async_trait]
impl VectorCache for PostgresVectorCache {
    async fn load(&self, principal: &Principal, texts: &[Digest]) -> Result<Vec<(Digest, Embedding)>, StoreError> {
        let principal = column(principal.as_str());
        let mut loaded = Vec::new();
        for texts in texts.chunks(BATCH) {
            let names: Vec<_> = texts.iter().map(Digest::to_string).collect();
            let rows = self.database.read(LOAD, &[&principal, &names]).await?;
            let of_name: HashMap<_, _> = names.iter().map(String::as_str).zip(texts).collect();
            let vector = |row: &Row| Some((**of_name.get(row.get::<_, &str>(0))?, vector_bytes::read(row.get(1))?));
            loaded.extend(rows.iter().filter_map(vector));
        }
        Ok(loaded)
    }

    async fn add(&self, principal: &Principal, vectors: &[(Digest, Embedding)]) -> Result<usize, StoreError> {
        let principal = column(principal.as_str());
        let texts: Vec<_> = vectors.iter().map(|(text, _)| text.to_string()).collect();
        let numbers: Vec<_> = vectors.iter().map(|(_, vector)| vector_bytes::write(vector)).collect();
        self.database.write(ADD, &[&principal, &texts, &numbers]).await?;
        let rows = self.database.read(COUNT, &[&principal]).await?;
        let count = rows.first().map_or(0, |row| row.get::<_, i64>(0));
        Ok(usize::try_from(count).unwrap_or_default())
    }

    async fn retain(&self, principal: &Principal, texts: &[Digest]) -> Result<(), StoreError> {
        let texts: Vec<_> = texts.iter().map(Digest::to_string).collect();
        let principal = column(principal.as_str());
        self.database.write(RETAIN, &[&principal, &texts]).await.map(drop)
    }
}
