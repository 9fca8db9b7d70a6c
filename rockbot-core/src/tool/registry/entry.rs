//! A tool in a registry, and the owner that registered it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::RegistryError;
use crate::support::{defused, defused_json};
use crate::tool::{ArgumentSchema, NotStrict, StrictSchema, Tool, ToolExecutor, ToolExposure, ToolRegistration};
use rockbot_schema::model_schema;

/// A token that identifies the part of the program that registered a tool. Only its holder can
/// replace or remove the tool.
///
/// Two owners are equal only if one is a clone of the other; equal names do not make them equal.
#[derive(Clone)]
pub struct Owner(Arc<str>);

impl Owner {
    /// Creates a new owner. `name` is for messages only.
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

/// A registered tool, with all that is computed from it once: the compiled schema and the
/// definition for the model.
#[derive(Debug)]
pub struct ToolEntry {
    registration: ToolRegistration,
    executor: Arc<dyn ToolExecutor>,
    arguments: Arc<ArgumentSchema>,
    definition: String,
    /// Length of the parameters' text, which ends two bytes before the definition does.
    parameters_len: usize,
    /// Converted when a model is first asked in strict mode.
    strict_schema: OnceLock<Result<StrictSchema, NotStrict>>,
    owner: Owner,
}

impl ToolEntry {
    pub(super) fn new(owner: &Owner, tool: Tool) -> Result<Arc<Self>, RegistryError> {
        let Tool {
            mut registration,
            executor,
        } = tool;
        if registration.hints.outside_text {
            registration.defuse();
        }
        let name = &registration.name;
        if !name.is_valid() {
            return Err(RegistryError::InvalidName(name.clone()));
        }
        if registration.description.trim().is_empty() {
            return Err(RegistryError::NoDescription(name.clone()));
        }
        if registration.hints.max_concurrency == Some(0) {
            return Err(RegistryError::NoConcurrency(name.clone()));
        }
        let arguments =
            ArgumentSchema::compile(&registration.parameters_schema).map_err(|cause| RegistryError::InvalidSchema {
                name: name.clone(),
                cause,
            })?;
        let mut parameters = model_schema(&registration.parameters_schema);
        if registration.hints.outside_text {
            // Names and values, too.
            parameters = defused_parameters(&parameters);
        }
        let definition = registration.definition(&parameters);
        Ok(Arc::new(Self {
            registration,
            executor,
            arguments: Arc::new(arguments),
            definition,
            parameters_len: parameters.len(),
            strict_schema: OnceLock::new(),
            owner: owner.clone(),
        }))
    }

    /// Returns a copy that shows the tool and cannot run it, so that it keeps nothing of the tool's
    /// host.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn detached(&self) -> Self {
        Self {
            registration: self.registration.clone(),
            executor: Arc::new(Detached),
            arguments: self.arguments.clone(),
            definition: self.definition.clone(),
            parameters_len: self.parameters_len,
            strict_schema: OnceLock::new(),
            owner: self.owner.clone(),
        }
    }

    /// Returns the description of the tool.
    pub fn registration(&self) -> &ToolRegistration {
        &self.registration
    }

    /// Returns the condition for showing the tool to a model.
    pub fn exposure(&self) -> &ToolExposure {
        &self.registration.hints.exposure
    }

    /// Returns the executor of its calls.
    pub fn executor(&self) -> &Arc<dyn ToolExecutor> {
        &self.executor
    }

    /// Returns the compiled schema of its arguments.
    pub fn arguments(&self) -> &ArgumentSchema {
        &self.arguments
    }

    /// Returns the definition for the model, as JSON text.
    pub fn definition(&self) -> &str {
        &self.definition
    }

    /// Returns the schema of the arguments for the model, as JSON text: see
    /// [`ToolRegistration::to_llm_tool_definition`]. It is for dialects that define tools in another
    /// form.
    pub fn parameters(&self) -> &str {
        let end = self.definition.len() - "}}".len();
        &self.definition[end - self.parameters_len..end]
    }

    /// Returns the schema of the arguments in the form of OpenAI's strict mode.
    ///
    /// # Errors
    ///
    /// Returns the part of the schema that has no such form. The tool is then sent without.
    pub fn strict_schema(&self) -> Result<&StrictSchema, &NotStrict> {
        let convert = || {
            let schema = StrictSchema::of(&self.registration.parameters_schema)?;
            Ok(if self.registration.hints.outside_text {
                schema.map_text(|text| defused_parameters(&text))
            } else {
                schema
            })
        };
        self.strict_schema.get_or_init(convert).as_ref()
    }

    /// Returns the owner, who registered the tool.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }
}

/// Returns the JSON text of a schema without anything hidden. Only a text with escapes is parsed
/// for that.
fn defused_parameters(parameters: &str) -> String {
    let shown = defused(parameters);
    match parameters.contains("\\u").then(|| serde_json::from_str(&shown)) {
        Some(Ok(schema)) => defused_json(&schema).to_string(),
        Some(Err(_)) | None => shown.into_owned(),
    }
}

/// The executor of a recorded tool.
#[cfg(any(test, feature = "testing"))]
#[derive(Debug)]
struct Detached;

#[cfg(any(test, feature = "testing"))]
#[async_trait::async_trait]
impl ToolExecutor for Detached {
    async fn execute(
        &self,
        _: crate::tool::ToolInvokeRequest,
        _: &crate::CallContext,
    ) -> Result<crate::tool::ToolInvokeResponse, crate::tool::ToolError> {
        let error = "a tool of a recorded request cannot be called: call that of the host";
        Err(crate::tool::ToolError::execution_failed(error))
    }
}
