//! Opening of connections, with the same settings for the writer and the readers.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::QueryError;

/// Maximum time to wait for a lock that another program holds on the file, such as a backup.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens a connection to an existing file. Symbolic links are not followed.
pub(in crate::sqlite) fn connect(path: &Path, how: OpenFlags) -> Result<Connection, QueryError> {
    let flags = how | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // A tampered file may contain views and triggers; untrusted schemas may call no functions with
    // side effects.
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}
