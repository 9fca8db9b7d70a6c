//! Ids and tools of the turns below a call.

use std::sync::Arc;

use rockbot_core::tool::{ToolFilter, ToolSelector};
use rockbot_core::{CallContext, Digest};

/// Tools that no turn below a call has: they change the host.
const OF_HOST: [&str; 2] = ["mcp_register_server", "mcp_unregister_server"];

/// Returns an id of eight characters. The id follows from the names of a call, so a repeated call
/// has the same id.
pub(crate) fn short_id(names: &[&str]) -> String {
    Digest::of(names).short().chars().take(8).collect()
}

/// Returns the tools of a turn below a call: the caller's tools, without `groups`.
pub(crate) fn tools_without(groups: &[&str], cx: &CallContext) -> ToolFilter {
    let groups = groups.iter().map(|group| ToolSelector::group(*group));
    let filter = ToolFilter::all().without(groups.chain(OF_HOST.map(ToolSelector::from)));
    match cx.extension::<Arc<ToolFilter>>() {
        Some(inherited) => filter.and(inherited),
        None => filter,
    }
}
