//! The descriptor of a tool: its service, and the texts that the model reads.

use rockbot_core::tool::Effect;
use serde_json::{Map, Value};

use super::{DescriptorProblem, Fields};

/// The `type` of tools that a tool service runs.
const TYPE: &str = "tool-service";

/// The members of a tool besides its config parameters.
pub(super) const FIELDS: [&str; 6] = ["type", "name", "description", "service", "arguments", "effect"];

/// A tool as its descriptor describes it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::tool_services) struct ToolDescriptor {
    pub(in crate::tool_services) name: String,
    pub(in crate::tool_services) description: String,
    /// The key or the id of its service.
    pub(in crate::tool_services) service: String,
    pub(in crate::tool_services) arguments: Vec<Argument>,
    pub(in crate::tool_services) effect: Effect,
    /// All members, the config parameters among them.
    pub(super) members: Map<String, Value>,
}

/// An argument that the model sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tool_services) struct Argument {
    pub(in crate::tool_services) name: String,
    /// The type in the descriptor's own words; free text.
    pub(in crate::tool_services) kind: String,
    pub(in crate::tool_services) description: String,
    pub(in crate::tool_services) required: bool,
}

impl ToolDescriptor {
    pub(super) fn read(fields: &Fields) -> Result<Self, DescriptorProblem> {
        let kind = fields.required_text("type")?;
        if kind != TYPE {
            let message = format!("is `{kind}`: only tools of type `{TYPE}` are loaded from descriptors");
            return Err(fields.wrong("type", message));
        }
        Ok(Self {
            name: fields.required_text("name")?.to_owned(),
            description: fields.required_text("description")?.to_owned(),
            service: fields.required_text("service")?.to_owned(),
            arguments: arguments(fields)?,
            effect: effect(fields)?,
            members: fields.members().clone(),
        })
    }
}

fn arguments(fields: &Fields) -> Result<Vec<Argument>, DescriptorProblem> {
    const LIST: &str = "arguments";
    let mut arguments: Vec<Argument> = Vec::new();
    for (index, value) in fields.list(LIST)?.iter().enumerate() {
        let element = fields.element((LIST, index), value)?;
        let text = |name| element.get(|argument| argument.text(name));
        let argument = Argument {
            name: element.get(|argument| argument.required_text("name"))?.to_owned(),
            kind: text("type")?.unwrap_or("string").to_owned(),
            description: text("description")?.unwrap_or_default().to_owned(),
            required: element.get(|argument| argument.flag("required", true))?,
        };
        if arguments.iter().any(|other| other.name == argument.name) {
            let message = format!("is `{}` a second time: remove one", argument.name);
            return Err(fields.wrong_element((LIST, index), Some("name"), message));
        }
        arguments.push(argument);
    }
    Ok(arguments)
}

fn effect(fields: &Fields) -> Result<Effect, DescriptorProblem> {
    match fields.text("effect")? {
        None | Some("mutating") => Ok(Effect::Mutating),
        Some("idempotent") => Ok(Effect::Idempotent),
        Some("pure") => Ok(Effect::Pure),
        Some(_) => Err(fields.wrong("effect", "is none of `pure`, `idempotent` and `mutating`")),
    }
}
