//! The table of one document type, restricted to one principal.

use std::borrow::Borrow;
use std::marker::PhantomData;
use std::sync::Arc;

use rockbot_core::Principal;
use rusqlite::{Connection, OptionalExtension};
use serde_json::{Map, Value};

use super::error::{QueryError, SqliteError};
use super::row::{parse, parse_or_skip, to_json};
use crate::storage::documents::{Document, MAX_BYTES, Members};

/// A document with a text key. Its table is named by [`Document::WHAT`].
pub(in crate::sqlite) trait DocumentRow: Document<Key: Borrow<str>> {}

impl<D: Document<Key: Borrow<str>>> DocumentRow for D {}

/// The rows of `principal` in the table of `D`.
pub(in crate::sqlite) struct Table<'a, D> {
    pub(in crate::sqlite) connection: &'a Connection,
    pub(in crate::sqlite) principal: &'a Principal,
    kind: PhantomData<D>,
}

impl<'a, D: DocumentRow> Table<'a, D> {
    pub(in crate::sqlite) fn new(connection: &'a Connection, principal: &'a Principal) -> Self {
        Self {
            connection,
            principal,
            kind: PhantomData,
        }
    }

    /// Returns a document; a row that cannot be parsed is an error.
    pub(in crate::sqlite) fn get(&self, id: &str) -> Result<Option<Arc<D>>, QueryError> {
        let json = self.json(id)?;
        json.map(|json| parse(D::WHAT, id, &json)).transpose()
    }

    /// Returns all documents in the order of their ids. Rows that cannot be parsed are left out with
    /// a warning.
    pub(in crate::sqlite) fn list(&self) -> Result<Vec<Arc<D>>, QueryError> {
        let sql = format!("SELECT id, json FROM {} WHERE principal = ?1 ORDER BY id", D::WHAT);
        let mut statement = self.connection.prepare(&sql)?;
        let mut rows = statement.query((self.principal.as_str(),))?;
        let mut documents = Vec::new();
        while let Some(row) = rows.next()? {
            let id = row.get_ref(0)?.as_str();
            let json = row.get_ref(1)?.as_str();
            let id = id.map_err(rusqlite::Error::from)?;
            let json = json.map_err(rusqlite::Error::from)?;
            documents.extend(parse_or_skip(D::WHAT, id, json));
        }
        Ok(documents)
    }

    /// Writes a document, preserving the unknown members of the row that it replaces.
    pub(in crate::sqlite) fn put(&self, document: &D) -> Result<(), QueryError> {
        let key = document.key();
        let id: &str = key.borrow();
        let other = self.other(id)?;
        let json = to_json(&Members {
            document,
            other: &other,
        })?;
        if json.len() > MAX_BYTES {
            return Err(SqliteError::TooLarge {
                what: D::WHAT,
                id: id.to_owned(),
                len: json.len(),
                limit: MAX_BYTES,
            }
            .into());
        }
        let sql = format!(
            "INSERT INTO {} (principal, id, json) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET json = excluded.json",
            D::WHAT
        );
        self.connection.execute(&sql, (self.principal.as_str(), id, json))?;
        Ok(())
    }

    /// Deletes a document and returns it; a row that cannot be parsed is deleted, too.
    pub(in crate::sqlite) fn delete(&self, id: &str) -> Result<Option<Arc<D>>, QueryError> {
        let sql = format!(
            "DELETE FROM {} WHERE principal = ?1 AND id = ?2 RETURNING json",
            D::WHAT
        );
        let json: Option<String> = self
            .connection
            .query_row(&sql, (self.principal.as_str(), id), |row| row.get(0))
            .optional()?;
        Ok(json.and_then(|json| parse_or_skip(D::WHAT, id, &json)))
    }

    /// Returns the JSON of a row.
    fn json(&self, id: &str) -> Result<Option<String>, QueryError> {
        let sql = format!("SELECT json FROM {} WHERE principal = ?1 AND id = ?2", D::WHAT);
        let mut statement = self.connection.prepare(&sql)?;
        let json = statement.query_row((self.principal.as_str(), id), |row| row.get(0));
        Ok(json.optional()?)
    }

    /// Returns the unknown members of the row `id`. A row that cannot be parsed is an error, so that
    /// it is not overwritten.
    fn other(&self, id: &str) -> Result<Map<String, Value>, QueryError> {
        let Some(json) = self.json(id)? else {
            return Ok(Map::new());
        };
        parse::<D>(D::WHAT, id, &json)?;
        let mut members: Map<String, Value> = parse(D::WHAT, id, &json)?;
        members.retain(|name, _| !D::MEMBERS.contains(&name.as_str()));
        Ok(members)
    }
}
