//! The descriptor of a tool service: its queues, and the config parameters that it takes.

use serde_json::Value;

use super::{DescriptorProblem, Fields};
use crate::tool_services::queue_id::{QueueId, QueueIdError};

/// The members that a service may have.
const FIELDS: [&str; 5] = ["id", "request-queue", "response-queue", "topic", "config-params"];

/// A tool service as its descriptor describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tool_services) struct ServiceDescriptor {
    pub(in crate::tool_services) id: String,
    pub(in crate::tool_services) request: QueueId,
    pub(in crate::tool_services) response: QueueId,
    pub(in crate::tool_services) params: Vec<ConfigParam>,
    /// Members that mean nothing.
    pub(in crate::tool_services) hints: Vec<DescriptorProblem>,
}

/// A config parameter that a service takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tool_services) struct ConfigParam {
    pub(in crate::tool_services) name: String,
    pub(in crate::tool_services) required: bool,
}

impl ServiceDescriptor {
    pub(super) fn read(fields: &Fields) -> Result<Self, DescriptorProblem> {
        let unknown = fields.members().keys().filter(|name| !FIELDS.contains(&name.as_str()));
        let hint = |name: &String| {
            fields
                .wrong(name, "is no field of a tool service: it has no effect")
                .hint()
        };
        Ok(Self {
            id: fields.required_text("id")?.to_owned(),
            request: queue(fields, "request-queue", QueueId::request)?,
            response: queue(fields, "response-queue", QueueId::response)?,
            params: params(fields)?,
            hints: unknown.map(hint).collect(),
        })
    }
}

/// Returns the queue in the field `name`, or the queue of the `topic`.
fn queue(
    fields: &Fields,
    name: &str,
    of_topic: impl FnOnce(&str) -> Result<QueueId, QueueIdError>,
) -> Result<QueueId, DescriptorProblem> {
    let (field, queue) = match (fields.text(name)?, fields.text("topic")?) {
        (Some(id), _) => (name, id.parse()),
        (None, Some(topic)) => ("topic", of_topic(topic)),
        (None, None) => return Err(fields.wrong(name, "is missing: name the queue, or set `topic` for both queues")),
    };
    queue.map_err(|error| fields.wrong(field, format!("is wrong: {error}")))
}

fn params(fields: &Fields) -> Result<Vec<ConfigParam>, DescriptorProblem> {
    const LIST: &str = "config-params";
    let mut params: Vec<ConfigParam> = Vec::new();
    for (index, value) in fields.list(LIST)?.iter().enumerate() {
        let param = match value {
            Value::String(name) if !name.is_empty() => ConfigParam {
                name: name.clone(),
                required: false,
            },
            value => {
                let element = fields.element((LIST, index), value)?;
                ConfigParam {
                    name: element.get(|param| param.required_text("name"))?.to_owned(),
                    required: element.get(|param| param.flag("required", false))?,
                }
            }
        };
        if params.iter().any(|other| other.name == param.name) {
            let message = format!("is `{}` a second time: remove one", param.name);
            return Err(fields.wrong_element((LIST, index), Some("name"), message));
        }
        params.push(param);
    }
    Ok(params)
}
