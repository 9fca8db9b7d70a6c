//! Copies of definitions that models are not shown as their servers sent them, for the operator.
//!
//! A description that is cut, or has hidden characters, is the place of an injected prompt; the
//! operator looks at a changed definition before accepting it. Each is kept word for word in
//! `mcp/definitions` of the data folder.

use rockbot_core::files::{DataFolder, FileError};
use serde_json::json;

use crate::connection::ListedTool;

/// The folder of the copies.
const FOLDER: &str = "definitions";

/// Maximum number of copies. Further copies are left out until the operator removes some.
const MAX_COPIES: usize = 500;

/// Returns `true` if models are shown something else than the server sent.
pub(crate) fn is_shown_otherwise(tool: &ListedTool) -> bool {
    tool.sent.is_some()
}

/// Writes the copies. A definition has one, however often it is seen.
pub(crate) fn keep(folder: &DataFolder, server: &str, tools: &[ListedTool]) -> Result<(), FileError> {
    if tools.is_empty() {
        return Ok(());
    }
    let mut left = MAX_COPIES.saturating_sub(folder.list(FOLDER)?.len());
    for tool in tools {
        let name = format!("{FOLDER}/{}.json", tool.fingerprint);
        if folder.find(&name)?.is_some() {
            continue;
        }
        if left == 0 {
            tracing::warn!(
                server,
                "no more than {MAX_COPIES} definitions of tools are kept in `mcp/{FOLDER}`: remove some"
            );
            break;
        }
        let description = tool.sent.as_deref().unwrap_or(&tool.description);
        let copy = json!({"server": server, "tool": tool.name, "description": description, "inputSchema": tool.schema});
        folder.replace(&name, format!("{copy:#}\n").as_bytes())?;
        tracing::warn!(
            server,
            copy = name,
            "a definition of an MCP server differs from what models are shown or knew"
        );
        left -= 1;
    }
    Ok(())
}
