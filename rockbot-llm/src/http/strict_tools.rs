//! Calls of a model in strict mode, without parts that only that mode demands.

use rockbot_core::chat::ToolCall;
use rockbot_core::tool::{ToolEntry, ToolView, without_optional_nulls};

/// Leaves out each `null` that stands for an argument that the model would have left out
/// otherwise: tools need not accept it.
pub(super) fn drop_added_nulls(tools: &ToolView, calls: &mut [ToolCall]) {
    for call in calls {
        let is_called = |entry: &&std::sync::Arc<ToolEntry>| entry.registration().name == call.name;
        let called = tools.iter().find(is_called);
        let is_strict = |entry: &&std::sync::Arc<ToolEntry>| entry.strict_schema().is_ok();
        let schema = called
            .filter(is_strict)
            .map(|entry| &entry.registration().parameters_schema);
        if let Some(arguments) = schema.and_then(|schema| without_optional_nulls(schema, &call.arguments)) {
            call.arguments = arguments.into();
        }
    }
}
