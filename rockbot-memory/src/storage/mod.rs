//! The building blocks that stores in files share. The format of a file and its crash safety live here; the stores of
//! [`file`](crate::file) only add their queries.
//!
//! * [`documents`]: a JSON file for each document, an index in memory, rescans for external edits
//! * [`json_file`]: one JSON document that is read once and replaced as a whole
//! * [`timeline`]: dated entries in one JSON Lines file for each session
//! * [`folder`]: opens a folder and removes what killed processes left in it
//! * [`path`]: the encoding of nested names as folders
//! * [`principal_cache`]: an LRU cache of per-principal state
//! * [`external_edit`]: how a file that a person edited is told from one that this crate wrote
//! * [`blocking`]: runs file I/O on the runtime's blocking threads

pub(crate) mod blocking;
pub(crate) mod documents;
pub(crate) mod external_edit;
pub(crate) mod folder;
pub(crate) mod json_file;
pub(crate) mod path;
pub(crate) mod principal_cache;
pub(crate) mod timeline;
