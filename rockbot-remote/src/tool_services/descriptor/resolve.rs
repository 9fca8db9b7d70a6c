//! A tool joined with its service: the queues that its calls take, and the config values that
//! they carry.

use serde_json::{Map, Value};

use super::tool::FIELDS;
use super::{DescriptorProblem, ServiceDescriptor, ToolDescriptor};
use crate::tool_services::queue_id::QueueId;

/// A tool that can be called.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::tool_services) struct ResolvedTool {
    /// The place of the tool's descriptor.
    pub(in crate::tool_services) place: String,
    pub(in crate::tool_services) descriptor: ToolDescriptor,
    pub(in crate::tool_services) request: QueueId,
    pub(in crate::tool_services) response: QueueId,
    /// The values of the config parameters, of any JSON type.
    pub(in crate::tool_services) config: Map<String, Value>,
    /// `true` if either descriptor is another program's.
    pub(in crate::tool_services) is_announced: bool,
}

/// Joins a tool with its service. Adds a hint to `hints` for each member that is neither a field
/// of a tool nor a config parameter of the service: it is not sent.
pub(in crate::tool_services) fn resolve(
    place: &str,
    tool: &ToolDescriptor,
    service: &ServiceDescriptor,
    hints: &mut Vec<DescriptorProblem>,
) -> Result<ResolvedTool, DescriptorProblem> {
    let mut config = Map::new();
    for param in &service.params {
        match tool.members.get(&param.name) {
            Some(value) => drop(config.insert(param.name.clone(), value.clone())),
            None if param.required => {
                let message = format!("is missing: the tool service `{}` requires it", service.id);
                return Err(DescriptorProblem::in_field(place, &param.name, message));
            }
            None => {}
        }
    }
    let is_known = |name: &str| FIELDS.contains(&name) || config.contains_key(name);
    for name in tool.members.keys().filter(|name| !is_known(name)) {
        let id = &service.id;
        let message = format!("is neither a field of a tool nor a config parameter of `{id}`: it is not sent");
        hints.push(DescriptorProblem::in_field(place, name, message).hint());
    }
    Ok(ResolvedTool {
        place: place.to_owned(),
        descriptor: tool.clone(),
        request: service.request.clone(),
        response: service.response.clone(),
        config,
        is_announced: false,
    })
}
