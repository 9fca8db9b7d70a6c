//! The executor of a tool that is written as a closure.

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

/// A tool that parses its arguments as `A`.
pub(super) fn typed<A, R, F>(name: &str, run: F) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    R: Future<Output: IntoToolOutput> + Send + 'static,
    F: Fn(A, &CallContext) -> R + Send + Sync + 'static,
{
    let registration = ToolRegistration::of::<A>(name);
    let arguments = ArgumentSchema::compile(&registration.parameters_schema).ok();
    let executor = Typed {
        run,
        arguments,
        marker: PhantomData,
    };
    Tool::new(registration, executor)
}

struct Typed<F, A, R> {
    run: F,
    /// `None` when the schema is beyond our bounds: then the registry refuses the tool anyway.
    arguments: Option<ArgumentSchema>,
    marker: PhantomData<fn(A) -> R>,
}

impl<F, A, R> fmt::Debug for Typed<F, A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Typed")
    }
}

#[async_trait]
impl<F, A, R> ToolExecutor for Typed<F, A, R>
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

impl<F, A, R> Typed<F, A, R> {
    /// What the schema says beyond the types. Most schemas say nothing, and cost nothing here.
    fn check_limits(&self, request: &ToolInvokeRequest) -> Result<(), ToolError> {
        let limits = self.arguments.as_ref().filter(|schema| schema.adds_to_types());
        let checked = limits.map_or(Ok(()), |schema| schema.check(&request.arguments).map(drop));
        checked.map_err(|error| error.into_tool_error(&request.tool_name))
    }

    /// What was wrong with the arguments: found by the schema where it can, else in the words of `problem`.
    fn teach(&self, request: &ToolInvokeRequest, problem: String) -> ToolError {
        let Some(schema) = &self.arguments else {
            return ToolError::invalid_arguments(problem);
        };
        let found = schema.check(&request.arguments).err();
        found
            .unwrap_or_else(|| schema.explain(problem))
            .into_tool_error(&request.tool_name)
    }
}

/// The bounds come first: serde alone would take an array for a struct.
fn parse<A: DeserializeOwned>(arguments: &str) -> Result<A, String> {
    ArgumentSchema::check_bounds(arguments).map_err(|error| error.to_string())?;
    serde_json::from_str(arguments).map_err(|error| error.to_string())
}
