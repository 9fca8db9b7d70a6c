//! The executor of a tool that is written as a closure: parses the arguments and calls it.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::IntoToolOutput;
use crate::CallContext;
use crate::tool::{
    ArgumentSchema, Tool, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration,
};

/// Creates a tool that parses its arguments as `A`.
pub(super) fn typed<A, R, F>(name: &str, run: F) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    R: Future<Output: IntoToolOutput> + Send + 'static,
    F: Fn(A, &CallContext) -> R + Send + Sync + 'static,
{
    let registration = ToolRegistration::of::<A>(name);
    let arguments = ArgumentSchema::compile(&registration.parameters_schema).ok();
    let executor = TypedExecutor {
        run,
        arguments,
        marker: PhantomData,
    };
    Tool::new(registration, executor)
}

struct TypedExecutor<F, A, R> {
    run: F,
    /// `None` if the schema exceeds the bounds of [`ArgumentSchema::compile`]; the registry then
    /// refuses the tool anyway.
    arguments: Option<ArgumentSchema>,
    marker: PhantomData<fn(A) -> R>,
}

impl<F, A, R> fmt::Debug for TypedExecutor<F, A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TypedExecutor")
    }
}

#[async_trait]
impl<F, A, R> ToolExecutor for TypedExecutor<F, A, R>
where
    F: Fn(A, &CallContext) -> R + Send + Sync + 'static,
    A: DeserializeOwned + Send + 'static,
    R: Future<Output: IntoToolOutput> + Send + 'static,
{
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let args = parse(&request.arguments).map_err(|problem| self.teach(&request, problem))?;
        self.check_limits(&request)?;
        let running = (self.run)(args, cx);
        let output = running.await.into_tool_output()?;
        Ok(request.succeed(output))
    }

    fn checks_arguments(&self) -> bool {
        true
    }
}

impl<F, A, R> TypedExecutor<F, A, R> {
    /// Validates the constraints of the schema beyond the types. Most schemas have no such
    /// constraints, and then this costs nothing.
    fn check_limits(&self, request: &ToolInvokeRequest) -> Result<(), ToolError> {
        let limits = self.arguments.as_ref().filter(|schema| schema.adds_to_types());
        let checked = limits.map_or(Ok(()), |schema| schema.check(&request.arguments).map(drop));
        checked.map_err(|error| ToolError::of_arguments(&request.tool_name, error))
    }

    /// Describes the fault in the arguments: by the schema if it finds the problem, else by serde's
    /// message `problem`.
    fn teach(&self, request: &ToolInvokeRequest, problem: String) -> ToolError {
        let Some(schema) = &self.arguments else {
            return ToolError::invalid_arguments(problem);
        };
        let error = schema.check(&request.arguments).err();
        let error = error.unwrap_or_else(|| schema.explain(problem));
        ToolError::of_arguments(&request.tool_name, error)
    }
}

/// Parses the arguments. The bounds are checked first, because serde alone would accept an array
/// for a struct.
fn parse<A: DeserializeOwned>(arguments: &str) -> Result<A, String> {
    ArgumentSchema::check_bounds(arguments).map_err(|error| error.to_string())?;
    serde_json::from_str(arguments).map_err(|error| error.to_string())
}
