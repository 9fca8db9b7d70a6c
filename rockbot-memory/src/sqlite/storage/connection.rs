//! How connections to the file are opened: the same settings for the writer and for the readers.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::SqliteError;

/// How long somebody waits while another program holds the file, such as one that copies it.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens a connection to a file that is there.
pub(in crate::sqlite) fn connect(path: &Path, how: OpenFlags) -> Result<Connection, SqliteError> {
    let flags = how | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Somebody may have put views and triggers into the file.
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}
