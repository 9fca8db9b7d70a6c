//! A tool in a registry, and the owner that registered it.

use std::fmt;
use std::sync::Arc;

use super::RegistryError;
use crate::tool::{ArgumentSchema, Tool, ToolExecutor, ToolRegistration};

/// Who registered a tool. Only the holder of the token can replace or remove it.
#[derive(Clone)]
pub struct Owner(Arc<str>);

impl Owner {
    /// A new owner; `name` is for messages only, two owners of one name are still two.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Owner {}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({})", self.0)
    }
}

/// A tool in a registry.
#[derive(Debug)]
pub struct ToolEntry {
    registration: ToolRegistration,
    executor: Arc<dyn ToolExecutor>,
    arguments: ArgumentSchema,
    definition: String,
    owner: Owner,
}

impl ToolEntry {
    pub(super) fn new(owner: &Owner, tool: Tool) -> Result<Arc<Self>, RegistryError> {
        let Tool { registration, executor } = tool;
        let name = &registration.name;
        if !name.is_valid() {
            return Err(RegistryError::InvalidName(name.clone()));
        }
        if registration.description.trim().is_empty() {
            return Err(RegistryError::NoDescription(name.clone()));
        }
        let arguments = ArgumentSchema::compile(&registration.parameters_schema).map_err(|source| {
            RegistryError::InvalidSchema {
                name: name.clone(),
                source,
            }
        })?;
        let definition = registration.to_llm_tool_definition();
        Ok(Arc::new(Self {
            registration,
            executor,
            arguments,
            definition,
            owner: owner.clone(),
        }))
    }

    /// What the tool says about itself.
    pub fn registration(&self) -> &ToolRegistration {
        &self.registration
    }

    /// What runs its calls.
    pub fn executor(&self) -> &Arc<dyn ToolExecutor> {
        &self.executor
    }

    /// What its arguments must look like.
    pub fn arguments(&self) -> &ArgumentSchema {
        &self.arguments
    }

    /// The tool's definition for a model, as JSON text.
    pub fn definition(&self) -> &str {
        &self.definition
    }

    /// Who registered it.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }
}
