//! The entrance of servers' texts: they are defused here, once, whatever shows them later.
//!
//! Definitions keep the text that the server sent for the operator ([`ListedTool::sent`]), and
//! their digests are digests of that text.
//!
//! Texts of servers are defused where they enter (`entrance`), once, whatever shows them later;
//! the original text is kept for the operator and the digests. A tool whose name hides characters
//! is left out.

use std::sync::Arc;

use rockbot_core::support::{defused, defused_json, loggable, one_line};
use serde_json::Value;

use crate::connection::ListedTool;

/// Returns the tools as models may read them. A tool whose name hides characters is left out:
/// people and models would read another name.
pub(crate) fn tools(server: &str, tools: Vec<ListedTool>) -> Vec<ListedTool> {
    tools.into_iter().filter_map(|tool| entering(server, tool)).collect()
}

fn entering(server: &str, mut tool: ListedTool) -> Option<ListedTool> {
    if *one_line(&tool.name) != *tool.name {
        let name = loggable(&tool.name);
        tracing::warn!(server, tool = %name, "a tool of an MCP server is left out: its name has hidden characters");
        return None;
    }
    let shown = defused(&tool.description).into_owned();
    if shown != tool.description {
        let sent = std::mem::replace(&mut tool.description, shown);
        tool.sent.get_or_insert_with(|| sent.into());
    }
    Some(tool)
}

/// Returns a server's words about itself.
pub(crate) fn instructions(text: &str) -> Arc<str> {
    defused(text).into()
}

/// Returns a schema as models may read it. Calls are checked against the schema that was sent.
pub(crate) fn schema(schema: &Value) -> Value {
    defused_json(schema)
}
