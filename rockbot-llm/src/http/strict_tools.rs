//! Calls of a model in strict mode, without what only that mode demands.

use rockbot_core::chat::ToolCall;
use rockbot_core::tool::{ToolEntry, ToolView};

/// Leaves out each `null` that stands for an argument that the model would have left out otherwise: tools need not
/// accept it.
pub(super) fn drop_added_nulls(tools: &ToolView, calls: &mut [ToolCall]) {
    for call in calls {
        let is_called = |entry: &&std::sync::Arc<ToolEntry>| entry.registration().name == call.name;
        let schema = tools
            .iter()
            .find(is_called)
            .and_then(|entry| entry.strict_schema().ok());
        if let Some(arguments) = schema.and_then(|schema| schema.without_added_nulls(&call.arguments)) {
            call.arguments = arguments.into();
        }
    }
}
